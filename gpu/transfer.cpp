#include "gpu/transfer.h"

#include <array>
#include <cstring>
#include <deque>
#include <memory>
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

// Pinned pieces of host memory through which bytes are copied, in turn: while the device copies one piece, the host
// fills the next. There is one Staging for each device, until the process ends.
class Staging {
 public:
  explicit Staging(int index) {
    for (Piece& p : pieces_) p.done = std::make_unique<Event>(index);
  }

  void to_device(const Stream& stream, std::byte* to, const std::byte* from, int64_t bytes) {
    std::lock_guard lock(mutex_);
    for (int64_t i = 0; i < bytes; i += kPiece) {
      const auto n = static_cast<size_t>(std::min(kPiece, bytes - i));
      Piece& p = next();
      std::memcpy(p.memory->data(), from + i, n);
      check_stream(stream, cudaMemcpyAsync(to + i, p.memory->data(), n, cudaMemcpyHostToDevice, stream.handle()));
      p.done->record(stream);
    }
  }

  void to_host(const Stream& stream, std::byte* to, const std::byte* from, int64_t bytes) {
    std::lock_guard lock(mutex_);
    const int64_t first = turn_;        // not 0: that piece may still be in use by a copy to the device
    const auto read = [&](int64_t i) {  // waits for copy i and reads its piece
      Piece& p = pieces_[static_cast<size_t>(first + i) % pieces_.size()];
      p.done->wait();
      p.used = false;
      std::memcpy(to + i * kPiece, p.memory->data(), static_cast<size_t>(std::min(kPiece, bytes - i * kPiece)));
    };
    int64_t i = 0;
    for (; i * kPiece < bytes; ++i) {
      if (i >= kPieces) read(i - kPieces);
      Piece& p = next();
      const auto n = static_cast<size_t>(std::min(kPiece, bytes - i * kPiece));
      check_stream(stream,
                   cudaMemcpyAsync(p.memory->data(), from + i * kPiece, n, cudaMemcpyDeviceToHost, stream.handle()));
      p.done->record(stream);
    }
    for (int64_t k = std::max<int64_t>(0, i - kPieces); k < i; ++k) read(k);
  }

 private:
  static constexpr int64_t kPiece = int64_t{8} << 20, kPieces = 4;
  struct Piece {
    std::unique_ptr<Pinned> memory;
    std::unique_ptr<Event> done;  // marks the end of its last copy
    bool used = false;            // whether the last copy may be running
  };

  // The next piece in turn, after its last copy is done.
  Piece& next() {
    Piece& p = pieces_[static_cast<size_t>(turn_++) % pieces_.size()];
    if (!p.memory) p.memory = std::make_unique<Pinned>(kPiece);
    if (p.used && !p.done->over()) p.done->wait();
    p.used = true;
    return p;
  }

  std::mutex mutex_;
  std::array<Piece, kPieces> pieces_;
  int64_t turn_ = 0;
};

Staging& staging(int index) {
  static const auto& all = *[] {
    auto* list = new std::vector<std::unique_ptr<Staging>>;
    for (int i = 0; i < device_count(); ++i) list->push_back(std::make_unique<Staging>(i));
    return list;
  }();
  return *all[static_cast<size_t>(index)];
}

// The destination's stream waits for the source's, and the source's waits for the copy, so that neither tensor's memory
// is reused too early.
void between_devices(const Tensor& dst, const Tensor& src, int64_t bytes) {
  const Stream &from = stream_of(src), &to = stream_of(dst);
  Event ready(from.index()), done(to.index());
  ready.record(from);
  to.wait_for(ready);
  check_stream(to, cudaMemcpyAsync(mutable_bytes_of(dst), bytes_of(src), static_cast<size_t>(bytes),
                                   cudaMemcpyDeviceToDevice, to.handle()));
  done.record(to);
  from.wait_for(done);
}

}  // namespace

void transfer(const Tensor& dst, const Tensor& src) {
  const int64_t bytes = byte_size(src);
  const bool from_host = src.device() == kCpu, to_host = dst.device() == kCpu;
  // Checked before anything is done: an event recorded in a capture can never be queried again.
  if (from_host) refuse_in_capture("it copies a tensor from the host to the device");
  if (to_host) refuse_in_capture("it waits for the device, as reading a number of a tensor does");
  record(Recorded::Kind::copy,
         from_host ? "host to device"
         : to_host ? "device to host"
                   : "device to device",
         0, bytes);
  if (from_host)
    staging(dst.device().index).to_device(stream_of(dst), mutable_bytes_of(dst), bytes_of(src), bytes);
  else if (to_host)
    staging(src.device().index).to_host(stream_of(src), mutable_bytes_of(dst), bytes_of(src), bytes);
  else
    between_devices(dst, src, bytes);
}

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
