#include "gpu/launch.h"

#include <cstdlib>
#include <cstring>

#include "core/error.h"
#include "gpu/recorder.h"
#include "gpu/steps/capture.h"

namespace isonorm::gpu {
namespace {

int64_t count(dim3 d) { return int64_t{d.x} * d.y * d.z; }

bool waits_each_time() {
  static const bool waits = [] {
    const char* s = std::getenv("ISONORM_GPU_SYNC");
    check(!s || !*s || std::strcmp(s, "0") == 0 || std::strcmp(s, "1") == 0, "ISONORM_GPU_SYNC: '", s ? s : "",
          "' is neither 0 nor 1");
    return s && *s == '1';
  }();
  return waits;
}

}  // namespace

Shape one_each(int64_t n, int threads) { return blocks_of(ceil_div(n, threads), threads); }

Shape blocks_of(int64_t n, int threads) {
  check(n > 0 && n <= 0x7fffffff, "launch: a grid of ", n, " blocks is not possible");
  return {dim3(static_cast<unsigned>(n)), dim3(static_cast<unsigned>(threads))};
}

void begin_launch(const char* name, const Shape& shape, const Stream& stream) {
  record(Recorded::Kind::launch, name, count(shape.blocks));
  (void)stream;
}

void finish_launch(cudaError_t status, const char* name, const Shape& s, const Stream& stream) {
  if (status != cudaSuccess) [[unlikely]] {
    (void)cudaGetLastError();
    if (cudaGetLastError() != cudaSuccess) check_stream(stream, status);  // it stays: an earlier kernel failed
    raise(ErrorKind::io,
          text(name, ": ", cudaGetErrorString(status), " for ", count(s.blocks), " blocks of ", count(s.threads),
               " threads, ", static_cast<int64_t>(s.dynamic), " bytes of shared memory"),
          __FILE__, __LINE__);
  }
  note_launch(stream, name);
  if (waits_each_time() && !under_capture()) stream.wait();
}

}  // namespace isonorm::gpu
