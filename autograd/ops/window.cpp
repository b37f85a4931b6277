#include "autograd/ops/window.h"

namespace isonorm::detail {

kernels::WindowShape window_shape(const char* op, const Tensor& x, Size2 kernel, Size2 stride, Size2 padding) {
  check(is_floating(x.dtype()), op, ": dtype is ", x.dtype(), ", expected f32, f64 or bf16");
  check(x.rank() == 4, op, ": the input has shape ", x.shape(), ", expected [images, height, width, channels]");
  const Size2 image{x.size(1), x.size(2)};
  check(image.height > 0 && image.width > 0, op, ": images of ", image, " pixels in ", x.shape());
  check(kernel.height > 0 && kernel.width > 0, op, ": a window of ", kernel);
  check(stride.height > 0 && stride.width > 0, op, ": a stride of ", stride);
  check(padding.height >= 0 && padding.width >= 0, op, ": a padding of ", padding);
  const auto outputs = [&](int64_t size, int64_t k, int64_t step, int64_t pad) {
    const int64_t padded = checked_add(size, checked_mul(2, pad, op), op);
    check(k <= padded, op, ": a window of ", kernel, " is larger than images of ", image, " with a padding of ",
          padding);
    return (padded - k) / step + 1;
  };
  const int64_t out_h = outputs(image.height, kernel.height, stride.height, padding.height),
                out_w = outputs(image.width, kernel.width, stride.width, padding.width);
  numel({x.size(0), out_h, out_w, kernel.height, kernel.width, x.size(3)}, op);  // of all windows
  return {x.size(0),     image.height, image.width,    x.size(3),     kernel.height, kernel.width,
          stride.height, stride.width, padding.height, padding.width, out_h,         out_w};
}

}  // namespace isonorm::detail
