#include "gpu/upload.h"

#include <cstring>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "core/memory/bytes.h"
#include "gpu/device.h"
#include "gpu/memory.h"
#include "gpu/recorder.h"
#include "gpu/steps/capture.h"
#include "gpu/stream.h"

namespace isonorm::gpu {
namespace {

// The stream of a device's uploads and the pinned blocks that they read. Lives until the process ends.
class Uploads {
 public:
  explicit Uploads(int index) : stream_(index) {}

  // Begins the copy; the returned event marks its end.
  std::shared_ptr<Event> begin(const Tensor& to, const Tensor& from) {
    const int64_t bytes = byte_size(from);
    refuse_in_capture("it copies a tensor from the host to the device");
    const std::scoped_lock lock(mutex_, captures());
    while (under_way_.size() >= kAtOnce) {
      under_way_.front().copied->wait();
      under_way_.pop_front();
    }
    auto pinned = std::make_unique<Pinned>(bytes);
    std::memcpy(pinned->data(), bytes_of(from), static_cast<size_t>(bytes));
    Event given(stream_.index());
    given.record(stream_of(to));
    stream_.wait_for(given);
    record(Recorded::Kind::copy, "host to device", 0, bytes);
    check_stream(stream_, cudaMemcpyAsync(mutable_bytes_of(to), pinned->data(), static_cast<size_t>(bytes),
                                          cudaMemcpyHostToDevice, stream_.handle()));
    auto copied = std::make_shared<Event>(stream_.index());
    copied->record(stream_);
    under_way_.push_back({std::move(pinned), copied});
    return copied;
  }

 private:
  static constexpr size_t kAtOnce = 4;
  struct Copy {
    std::unique_ptr<Pinned> pinned;
    std::shared_ptr<Event> copied;
  };

  std::mutex mutex_;
  Stream stream_;
  std::deque<Copy> under_way_;
};

Uploads& uploads(int index) {
  static const auto& all = *[] {
    auto* list = new std::vector<std::unique_ptr<Uploads>>;
    for (int i = 0; i < device_count(); ++i) list->push_back(std::make_unique<Uploads>(i));
    return list;
  }();
  return *all[static_cast<size_t>(index)];
}

class CudaUpload final : public Upload {
 public:
  CudaUpload(const Tensor& x, Device device) : there_(empty(x.shape(), {x.dtype(), device})) {
    if (x.numel() > 0) copied_ = uploads(device.index).begin(there_, x);
  }
  ~CudaUpload() override {
    try {
      arrive();
    } catch (const std::exception&) {
      // The device is lost; every later call says so.
    }
  }
  Tensor take() override {
    arrive();
    return std::move(there_);
  }

 private:
  void arrive() {
    const auto copied = std::exchange(copied_, nullptr);
    if (!copied) return;
    refuse_in_capture("it takes a batch that is copied to the device");
    const std::lock_guard lock(captures());
    stream_of(there_).wait_for(*copied);
  }

  Tensor there_;
  std::shared_ptr<Event> copied_;
};

}  // namespace

std::unique_ptr<Upload> begin_upload(const Tensor& x, Device device) {
  check_device(device);
  return std::make_unique<CudaUpload>(x, device);
}

}  // namespace isonorm::gpu
