#include "gpu/steps/complaints.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "gpu/device.h"
#include "gpu/memory.h"
#include "gpu/steps/capture.h"

namespace isonorm::gpu {
namespace {

struct Room {
  std::mutex mutex;
  std::unique_ptr<Pinned> pinned;
  std::atomic<ComplaintPlace*> place{nullptr};
  std::byte* words = nullptr;  // device memory: `first`, then `done`
};

Room& room(int index) {
  static auto& all = *new std::vector<Room>(static_cast<size_t>(std::max(device_count(), 1)));
  return all[static_cast<size_t>(index)];
}

bool checks_now() {
  static const bool now = [] {
    const char* s = std::getenv("ISONORM_GPU_CHECKS");
    check(!s || !*s || std::strcmp(s, "0") == 0 || std::strcmp(s, "now") == 0, "ISONORM_GPU_CHECKS: '", s ? s : "",
          "' is neither 0 nor now");
    return s && *s == 'n';
  }();
  return now;
}

}  // namespace

ComplaintMemory complaint_memory(const Stream& stream) {
  Room& r = room(stream.index());
  const std::lock_guard lock(r.mutex);
  constexpr int64_t kFirst = sizeof(unsigned long long), kBytes = kFirst + sizeof(unsigned);
  if (!r.place) {
    check(!under_capture(), "captured step: its first check of ids is inside of the capture");
    auto pinned = std::make_unique<Pinned>(static_cast<int64_t>(sizeof(ComplaintPlace)));
    auto* place = static_cast<ComplaintPlace*>(pinned->data());
    place->full = 0;
    auto* words = static_cast<std::byte*>(device_allocator({DeviceKind::cuda, stream.index()}).allocate(kBytes));
    check_stream(stream, cudaMemsetAsync(words, 0xff, kFirst, stream.handle()));
    check_stream(stream, cudaMemsetAsync(words + kFirst, 0, kBytes - kFirst, stream.handle()));
    r.pinned = std::move(pinned), r.words = words, r.place = place;
  }
  return {r.place, reinterpret_cast<unsigned long long*>(r.words), reinterpret_cast<unsigned*>(r.words + kFirst)};
}

void finish_check(const Stream& stream) {
  if (checks_now() && !under_capture()) stream.wait();
}

void throw_complaint(int index) {
  ComplaintPlace* place = room(index).place;
  if (!place || !std::atomic_ref(place->full).load(std::memory_order_acquire)) [[likely]]
    return;
  const kernels::Complaint c = place->complaint;
  std::atomic_ref(place->full).store(0, std::memory_order_release);
  const std::string message = text_of(c);
  // Not by raise(): the code that waits is seldom the code that asked for the check.
  throw Error(ErrorKind::invalid, c.path && *c.path ? text(c.path, ": ", message) : message, __FILE__, __LINE__);
}

const char* interned(const std::string& s) {
  constexpr size_t kMost = 4096;
  static std::mutex mutex;
  static auto& all = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  const auto at = all.find(s);
  if (at != all.end()) return at->c_str();
  return all.size() < kMost ? all.insert(s).first->c_str() : "";
}

}  // namespace isonorm::gpu
