#include "core/memory/upload.h"

#include "core/memory/storage.h"

namespace isonorm {
namespace {

class AtHand final : public Upload {
 public:
  explicit AtHand(const Tensor& x) : x_(x) {}
  Tensor take() override { return x_; }

 private:
  Tensor x_;
};

}  // namespace

std::unique_ptr<Upload> upload(const Tensor& x, Device device) {
  check(x.device() == kCpu && x.is_contiguous(), "upload: a tensor of shape ", x.shape(), " on ", x.device(),
        x.is_contiguous() ? "" : " with gaps", ", expected a contiguous one on the CPU");
  if (device == kCpu) return std::make_unique<AtHand>(x);
  allocator_of(device);  // starts the GPUs
  check(begin_upload != nullptr, "upload: to ", device, " is not possible here");
  return begin_upload(x, device);
}

}  // namespace isonorm
