#include "autograd/ops/window.h"

namespace isonorm::detail {

void check_windows(const char* op, const Tensor& x, Size2 kernel, const Steps& steps) {
  const Size2 stride = steps.stride, padding = steps.padding, dilation = steps.dilation;
  check(is_floating(x.dtype()), op, ": dtype is ", x.dtype(), ", expected f32, f64 or bf16");
  check(x.rank() == 4, op, ": the input has shape ", x.shape(), ", expected [images, height, width, channels]");
  const Size2 image{x.size(1), x.size(2)};
  check(image.height > 0 && image.width > 0, op, ": images of ", image, " pixels in ", x.shape());
  check(kernel.height > 0 && kernel.width > 0, op, ": a window of ", kernel);
  check(stride.height > 0 && stride.width > 0, op, ": a stride of ", stride);
  check(padding.height >= 0 && padding.width >= 0, op, ": a padding of ", padding);
  check(dilation.height > 0 && dilation.width > 0, op, ": a dilation of ", dilation);
}

kernels::WindowShape window_shape(const char* op, const Tensor& x, Size2 kernel, const Steps& steps) {
  check_windows(op, x, kernel, steps);
  const Size2 image{x.size(1), x.size(2)}, stride = steps.stride, padding = steps.padding, dilation = steps.dilation;
  const bool ceil = steps.ceil;
  const auto outputs = [&](int64_t size, int64_t k, int64_t step, int64_t pad, int64_t apart) {
    const int64_t padded = checked_add(size, checked_mul(2, pad, op), op),
                  reach = checked_add(checked_mul(k - 1, apart, op), 1, op);
    const int64_t room = checked_add(padded, ceil ? step - 1 : 0, op) - reach;
    check(room >= 0, op, ": a window of ", kernel, dilation == Size2(1) ? "" : text(" with a dilation of ", dilation),
          " is larger than images of ", image, " with a padding of ", padding);
    const int64_t count = room / step + 1;
    return count - (ceil && (count - 1) * step >= size + pad ? 1 : 0);
  };
  const int64_t out_h = outputs(image.height, kernel.height, stride.height, padding.height, dilation.height),
                out_w = outputs(image.width, kernel.width, stride.width, padding.width, dilation.width);
  // Throws if all windows together overflow.
  numel({x.size(0), out_h, out_w, kernel.height, kernel.width, x.size(3)}, op);
  return {x.size(0),    image.height,   image.width,   x.size(3), kernel.height, kernel.width,    stride.height,
          stride.width, padding.height, padding.width, out_h,     out_w,         dilation.height, dilation.width};
}

}  // namespace isonorm::detail
