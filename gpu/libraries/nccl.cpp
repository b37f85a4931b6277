#include "gpu/libraries/nccl.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/memory/link.h"
#include "core/system/stopwatch.h"
#include "gpu/slots.h"
#include "gpu/stream.h"

namespace isonorm::gpu {
namespace {

using nccl::Comm, nccl::Result;

constexpr double kLeaving = 5;  // seconds that a rank waits for the end of its communicator

bool failed(Result r) { return r != nccl::success && r != nccl::in_progress; }

// Keeps the first failure.
void keep(Result& first, Result next) {
  if (!failed(first)) first = next;
}

// A link between ranks (core/memory/link.h). Communicators never block: their state is polled until it is ready or the
// time limit is over.
class NcclLink final : public Link {
 public:
  NcclLink(Device device, const LinkOffer& first, int rank, int size, LinkWait wait);
  ~NcclLink() override;

  void exchange(const void* send, void* receive, int64_t bytes, const char* what) override;
  void gather(const void* own, void* all, int64_t bytes, const char* what) override;

 private:
  void must(Result result, const char* what) const;
  bool settled(const char* what) const;
  void until(const char* what, double limit, const std::function<bool()>& done) const;
  void carry(const char* what, const std::function<Result()>& calls);
  void leave(Result (*how)(Comm)) noexcept;

  const nccl::Api api_;
  const Device device_;
  const int rank_, size_;
  const LinkWait wait_;
  Comm comm_ = nullptr;
  std::string why_;  // why the communicator was ended
  Event done_;
};

}  // namespace

nccl::Api::Api(const Library& library) {
  const auto take = [&]<class F>(F*& f, const char* name) { f = library.function<F>(name); };
  take(get_unique_id, "ncclGetUniqueId"), take(comm_init_rank_config, "ncclCommInitRankConfig");
  take(comm_get_async_error, "ncclCommGetAsyncError"), take(comm_finalize, "ncclCommFinalize");
  take(comm_destroy, "ncclCommDestroy"), take(comm_abort, "ncclCommAbort");
  take(group_start, "ncclGroupStart"), take(group_end, "ncclGroupEnd");
  take(send, "ncclSend"), take(recv, "ncclRecv"), take(all_gather, "ncclAllGather");
  take(get_error_string, "ncclGetErrorString"), take(get_last_error, "ncclGetLastError");
}

NcclLink::NcclLink(Device device, const LinkOffer& first, int rank, int size, LinkWait wait)
    : api_(gpu::nccl_library()),
      device_(device),
      rank_(rank),
      size_(size),
      wait_(std::move(wait)),
      done_(device.index) {
  constexpr const char* what = "NCCL begins (ISONORM_NCCL=0: without it)";
  try {
    const OnDevice on(device_.index);
    nccl::Id id;
    std::memcpy(id.bytes, first.id.data(), sizeof id.bytes);
    nccl::Config config;
    must(api_.comm_init_rank_config(&comm_, size, id, rank, &config), what);
    until(what, wait_.limit, [&] { return settled(what); });
  } catch (...) {
    leave(api_.comm_abort);
    throw;
  }
}

// The other ranks may still read data that this rank has sent until all have called ncclCommFinalize.
NcclLink::~NcclLink() {
  if (!comm_) return;
  try {
    const OnDevice on(device_.index);
    must(api_.comm_finalize(comm_), "NCCL ends");
    until("NCCL ends", kLeaving, [&] { return settled("NCCL ends"); });
    leave(api_.comm_destroy);
  } catch (...) {  // another rank is gone
    leave(api_.comm_abort);
  }
}

void NcclLink::exchange(const void* send, void* receive, int64_t bytes, const char* what) {
  const auto* from = static_cast<const std::byte*>(send);
  auto* to = static_cast<std::byte*>(receive);
  const auto count = static_cast<size_t>(bytes);
  carry(what, [&] {
    Result all = nccl::success;
    for (int r = 0; r < size_; ++r) {
      keep(all, api_.send(from + r * bytes, count, nccl::int8, r, comm_, stream_of(device_).handle()));
      keep(all, api_.recv(to + r * bytes, count, nccl::int8, r, comm_, stream_of(device_).handle()));
    }
    return all;
  });
}

void NcclLink::gather(const void* own, void* all, int64_t bytes, const char* what) {
  carry(what, [&] {
    return api_.all_gather(own, all, static_cast<size_t>(bytes), nccl::int8, comm_, stream_of(device_).handle());
  });
}

void NcclLink::must(Result result, const char* what) const {
  if (!failed(result)) return;
  const char* last = comm_ ? api_.get_last_error(comm_) : nullptr;
  check_io(false, what, ": NCCL: ", api_.get_error_string(result), last && *last ? "; " : "", last ? last : "");
}

// True if NCCL itself has done its last request; the device may still have to do its part.
bool NcclLink::settled(const char* what) const {
  Result state = nccl::success;
  must(api_.comm_get_async_error(comm_, &state), what);
  must(state, what);
  return state != nccl::in_progress;
}

// An idle rank gives its core away. If the process stood still, that time counts as at most a second.
void NcclLink::until(const char* what, double limit, const std::function<bool()>& done) const {
  double waited = 0, seen = 0;
  const Stopwatch watch;
  for (int idle = 0; !done(); ++idle) {
    wait_.look();
    check_io(waited <= limit, what, ": NCCL is not done within ", limit, " s");
    if (idle > 100) std::this_thread::yield();
    if (idle > 2000) std::this_thread::sleep_for(std::chrono::microseconds(50));
    const double now = watch.seconds();
    waited += std::min(1., now - std::exchange(seen, now));
  }
}

// Does `calls` as one group. The group reaches the stream only when the communicator has settled; then an event can
// mark its end. While a rank waits for the event it looks for errors of NCCL, which include errors of other ranks.
void NcclLink::carry(const char* what, const std::function<Result()>& calls) {
  check_io(comm_ != nullptr, what, ": NCCL was ended by: ", why_);
  try {
    const OnDevice on(device_.index);
    must(api_.group_start(), what);
    Result all = calls();
    keep(all, api_.group_end());
    must(all, what);
    until(what, wait_.limit, [&] { return settled(what); });
    done_.record(stream_of(device_));
    until(what, wait_.limit, [&] {
      (void)settled(what);
      return done_.over();
    });
  } catch (const std::exception& e) {
    why_ = e.what();
    leave(api_.comm_abort);
    throw;
  }
}

// Ends the communicator and its work on the device. ncclCommAbort, and ncclCommDestroy with it, was seen to block
// forever if another rank was gone or if the kernel did not leave the device (NVIDIA/nccl, issues 549, 1013, 1777). It
// therefore runs on a thread of its own, which is waited for a few seconds; then both are abandoned until the process
// ends.
void NcclLink::leave(Result (*how)(Comm)) noexcept {
  const Comm comm = std::exchange(comm_, nullptr);
  if (!comm) return;
  try {
    auto over = std::make_shared<std::promise<void>>();
    const std::future<void> ended = over->get_future();
    std::thread([=, index = device_.index] {
      (void)cudaSetDevice(index);
      (void)how(comm);
      over->set_value();
    }).detach();
    ended.wait_for(std::chrono::duration<double>(kLeaving));
  } catch (...) {  // no thread could be started: abandoned at once
  }
}

namespace {

LinkOffer offer_link(Device device, bool with_id) noexcept {
  LinkOffer offer;
  const auto say = [&](const char* why) { std::strncpy(offer.why_none.data(), why, offer.why_none.size() - 1); };
  try {
    const char* wish = std::getenv("ISONORM_NCCL");
    if (wish && std::strcmp(wish, "0") == 0) return say("ISONORM_NCCL is 0"), offer;
    if (!nccl_library()) return say(nccl_library().facts().why_none.c_str()), offer;
    const nccl::Api api(nccl_library());
    cudaDeviceProp properties;
    must(cudaGetDeviceProperties(&properties, device.index), "cuda");
    static_assert(sizeof properties.uuid == sizeof offer.device);
    std::memcpy(offer.device.data(), &properties.uuid, sizeof properties.uuid);
    nccl::Id id{};
    if (with_id) {
      const Result result = api.get_unique_id(&id);
      check_io(!failed(result), "ncclGetUniqueId: ", api.get_error_string(result));
    }
    std::memcpy(offer.id.data(), id.bytes, sizeof id.bytes);
  } catch (const std::exception& e) {
    say(e.what());
  }
  return offer;
}

constexpr Links kLinks{
    .offer = &offer_link,
    .make = [](Device device, const LinkOffer& first, int rank, int size, LinkWait wait) -> std::unique_ptr<Link> {
      return std::make_unique<NcclLink>(device, first, rank, size, std::move(wait));
    }};

}  // namespace

const Links* nccl_links() { return &kLinks; }

}  // namespace isonorm::gpu
