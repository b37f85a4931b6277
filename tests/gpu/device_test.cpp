// Devices as a program sees them: memory, copies, launches and their errors. The kernel is fill's.
#include "gpu/device.h"

#include <cstring>

#include "core/kernels/copy.h"
#include "core/memory/storage.h"
#include "gpu/dynamic.h"
#include "gpu/memory.h"
#include "gpu/recorder.h"
#include "gpu/transfer.h"
#include "tests/gpu/child.h"
#include "tests/gpu/device_floats.h"
#include "tests/gpu/primitives.h"
#include "tests/support/ops.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
using namespace isonorm::gpu;
using namespace isonorm::test;
using Catch::Matchers::Contains;

namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

Tensor on_device(const Dims& shape, DType d) { return empty(shape, {d, kGpu}); }
Tensor to_host(const Tensor& t) { return to(t, kCpu); }

}  // namespace

TEST_CASE("devices have names, memory and numbers") {
  CHECK(device_count() == 2);
  CHECK(why_none().empty());
  CHECK(device_name() == "emulated on the CPU");
  CHECK_THROWS_WITH(device_name({DeviceKind::cuda, 2}), Contains("cuda:2: there are 2 devices"));
  CHECK_THROWS_WITH(synchronize(kCpu), Contains("cpu: there are 2 devices"));
  const Memory before = memory();
  {
    const Scratch room(on_device({1}, DType::f32).device(), 3 * kMiB);
    CHECK(room.as<float>() != nullptr);
    CHECK(memory().held >= before.held);
    CHECK(memory().free + memory().held <= memory().total);
  }
  synchronize();
  empty_cache();
  CHECK(memory().held == 0);
}

TEST_CASE("memory that is out is told in numbers, and a limit holds") {
  (void)on_device({1}, DType::f32);  // the first tensor starts the devices
  empty_cache();
  set_memory_limit(10 * kMiB);
  {
    const Scratch some(kGpu, 6 * kMiB);
    CHECK_THROWS_WITH(Scratch(kGpu, 5 * kMiB), Contains("allocate: out of memory: 5242880 bytes asked for, 6") &&
                                                   Contains("; cuda:0: ") && Contains(" bytes free, limit 10485760"));
    CHECK_THROWS_WITH(set_memory_limit(kMiB), Contains("set_memory_limit: 1048576 bytes, but 6"));
  }
  const Scratch most(kGpu, 9 * kMiB);  // the released memory makes room
  set_memory_limit(0);
  emulated::fail_next("cudaMalloc", cudaErrorMemoryAllocation);
  const Scratch again(kGpu, 2 * kMiB);  // the second request succeeds, after the cache was emptied
}

TEST_CASE("bytes go to the device and come back") {
  for (const int64_t n : {int64_t{1}, int64_t{1000}, 9 * kMiB + 3}) {
    Tensor x = empty({n}, {DType::f32});
    for (int64_t i = 0; i < n; ++i) x.mutable_data<float>()[i] = static_cast<float>(i % 1000003);
    const Tensor y = on_device({n}, DType::f32);
    transfer(y, x);
    x.mutable_data<float>()[0] = -1;  // the copy has already read it
    const Tensor z = to_host(y);
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; ++i) wrong += z.data<float>()[i] != static_cast<float>(i % 1000003);
    CHECK(wrong == 0);
  }
}

TEST_CASE("fill writes its range and nothing else, for every dtype") {
  for (const DType d : {DType::f32, DType::f64, DType::bf16, DType::i64, DType::u8})
    for (const int64_t n : {0, 1, 15, 16, 17, 1000, 70000}) {
      INFO(name_of(d) << ", " << n);
      const Tensor x = on_device({n}, d);
      kernels::fill(x, 3);
      if (n == 0) continue;
      const std::vector<double> got = to_host(x).to_vector<double>();
      CHECK(std::all_of(got.begin(), got.end(), [](double v) { return v == 3; }));
    }
  const Tensor base = on_device({6, 7}, DType::f32);
  kernels::fill(base, 1);
  kernels::fill(as_strided(base, {2, 3}, {14, 2}, 1), 5);
  kernels::fill(as_strided(base, {3}, {1}, 39), 6);  // not at a multiple of 16 bytes
  const std::vector<double> got = to_host(base).to_vector<double>();
  for (int i = 0; i < 42; ++i) {
    const bool strided = i % 7 % 2 == 1 && (i / 7 == 0 || i / 7 == 2);
    CHECK(got[static_cast<size_t>(i)] == (i >= 39 ? 6 : strided ? 5 : 1));
  }
}

TEST_CASE("launches, copies and waits are written down") {
  const Tensor x = on_device({100}, DType::f32);
  const Recorder recorder;
  kernels::fill(x, 1);
  (void)to_host(x);
  REQUIRE(recorder.all().size() == 3);
  CHECK(recorder.all()[0].name == "fill.packs");
  CHECK(recorder.all()[0].blocks == 1);
  CHECK(recorder.all()[1].name == "device to host");
  CHECK(recorder.all()[1].bytes == 400);
  CHECK(recorder.count(Recorded::Kind::wait) == 1);
}

TEST_CASE("a launch that fails says which kernel") {
  const Stream& stream = stream_of(kGpu);
  CHECK_THROWS_WITH(
      start_empty(stream, 3, 1056, 0),
      "test.nothing: invalid configuration argument for 3 blocks of 1056 threads, 0 bytes of shared memory");
  CHECK_THROWS_WITH(start_empty(stream, 3, 33, 0), Contains("3 blocks of 33 threads"));
  CHECK_THROWS_WITH(start_empty(stream, 0, 32, 0), Contains("0 blocks"));
  CHECK_THROWS_WITH(start_empty(stream, 1, 32, 232449), Contains("232449 bytes of shared memory"));
  start_empty(stream, 1, 1024, 232448);
  synchronize();
  const Tensor x = on_device({100}, DType::f32);
  emulated::fail_next("cudaLaunchKernel", cudaErrorInvalidValue);
  CHECK_THROWS_WITH(kernels::fill(x, 1), Contains("fill.packs: invalid argument for 1 blocks of 256 threads"));
  kernels::fill(x, 1);
}

TEST_CASE("every later call reports a lasting error, with the kernel after which it appeared") {
  // The race checker knows no order between threads of the parent and of a child, so it would report races.
  if (emulated::kRaceChecks) return;
  const std::string said = said_by([] {
    const auto say = [](auto f) {
      try {
        f();
      } catch (const Error& e) {
        std::fprintf(stderr, "%s\n", e.what());
      }
    };
    const Tensor x = on_device({100}, DType::f32);
    (void)to_host(x);
    kernels::fill(x, 1);
    emulated::lose_device(cudaErrorIllegalAddress);
    say([&] { synchronize(); });
    say([&] { kernels::fill(x, 1); });
    say([&] { (void)to_host(x); });
    say([&] { (void)on_device({int64_t{1} << 34}, DType::f32); });
    emulated::lose_device(cudaSuccess);
  });
  const std::string line = "cuda:0: an illegal memory access was encountered; seen after 'fill.packs'\n";
  CHECK(said == line + line + line + line);
}

TEST_CASE("a missing library is reported with the places that were searched") {
  const LibraryName name{"Such", "libisonorm_has_no_such.so.1", "version"};
  const Library none(name, "/no/folder::/dev/null");
  CHECK(!none);
  const std::string why = none.facts().why_none;
  for (const char* at : {"/no/folder/libisonorm_has_no_such.so.1: ", "; /dev/null/libisonorm_has_no_such.so.1: ",
                         "; libisonorm_has_no_such.so.1: "})
    CHECK_THAT(why, Contains(at));
  CHECK(line_of(none.facts()) == "Such: none, " + why);
  CHECK_THROWS_WITH(none.function<int()>("f"), Contains("libisonorm_has_no_such.so.1"));
  CHECK(Library({"C", "libc.so.6", "abs"}, "0").facts().why_none == "libc.so.6: ISONORM_GPU_LIBRARIES is 0");
  CHECK(Library({"C", "libc.so.6", "version"}, "").facts().why_none == "libc.so.6: it has no function version");
}

TEST_CASE("a library is opened from the folders that are named, before the system's") {
  const TempFolder folder;
  const Library c({"C", "libc.so.6", "malloc_trim"}, "");
  REQUIRE(c);
  CHECK(c.function<int(int)>("abs")(-3) == 3);
  CHECK_THROWS_WITH(c.function<int()>("no_such"), Contains("libc.so.6: it has no function no_such"));
  const std::string file = "libisonorm_has_no_such.so.1";
  std::filesystem::create_symlink(c.facts().path, folder / file);
  const Library found({"Such", file.c_str(), "malloc_trim"}, "/no/folder:" + folder.path.string());
  CHECK(found);
  CHECK(found.function<int(int)>("abs")(-3) == 3);
  // A library with a name of the system's and other functions.
  const Library m({"M", "libm.so.6", "cos"}, "");
  std::filesystem::create_symlink(m.facts().path, folder / "libc.so.6");
  CHECK(!Library({"C", "libc.so.6", "cos"}, ""));
  CHECK(Library({"C", "libc.so.6", "cos"}, folder.path.string()));
}

TEST_CASE("facts of a library: its version, which may be too old, and its last error") {
  const auto functions = [](const char* name) -> void* {
    size_t (*version)() = [] { return size_t{90705}; };
    return std::strcmp(name, "version") == 0 ? reinterpret_cast<void*>(version) : nullptr;
  };
  const Library library({"Such", "libsuch.so.9", "version", 90700}, functions, "");
  REQUIRE(library);
  CHECK(library.version() == 90705);
  LibraryFacts facts = library.facts();
  CHECK(facts.version == "9.7.5");
  CHECK(!facts.path.empty());
  CHECK(line_of(facts) == "Such 9.7.5, " + facts.path);
  library.refused("this");
  library.refused("that");
  CHECK(line_of(library.facts()) == "Such 9.7.5, " + facts.path + "; refused 2 times, last that");
  library.left_epilogue();
  CHECK(line_of(library.facts()) ==
        "Such 9.7.5, " + facts.path + "; 1 epilogues have no algorithm; refused 2 times, last that");
  facts = Library({"Such", "libsuch.so.9", "version", 90800}, functions, "").facts();
  CHECK(facts.why_none == facts.path + ": version 9.7.5 is older than 9.8.0");
}

TEST_CASE("emulated devices have libraries if they are requested") {
  REQUIRE(libraries().size() == 2);
  for (const LibraryFacts& f : libraries()) CHECK(line_of(f) == f.name + ": none, the device is emulated");
}
