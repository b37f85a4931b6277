#include "autograd/ops/rotary.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "autograd/ops/pointwise.h"
#include "autograd/ops/shared.h"
#include "core/kernels/attention.h"
#include "core/memory/kept.h"
#include "core/system/float_environment.h"
#include "core/view.h"

namespace isonorm {
namespace {

// The cosines and the sines, [time, size/2] each.
std::vector<Tensor> make_angles(int64_t time, int64_t half, double base, TensorOptions options) {
  const DefaultFloatEnvironment environment;
  std::vector<double> c(static_cast<size_t>(time * half)), s(c.size());
  for (int64_t i = 0; i < half; ++i) {
    const double frequency = std::pow(base, -static_cast<double>(i) / static_cast<double>(half));
    for (int64_t t = 0; t < time; ++t) {
      const double angle = static_cast<double>(t) * frequency;
      c[t * half + i] = std::cos(angle);
      s[t * half + i] = std::sin(angle);
    }
  }
  const auto table = [&](const std::vector<double>& v) {
    const Tensor host = to(from_vector(v, {time, half}), options.dtype);
    Tensor out = empty(host.shape(), options);
    copy_into(out, host);
    return out;
  };
  return {table(c), table(s)};
}

// Caches the last few tables: a model asks for the same pair in every layer and forward.
std::vector<Tensor> angles(int64_t time, int64_t half, double base, TensorOptions options) {
  static auto& kept = *new KeptTensors(8);
  return kept.get({{static_cast<double>(time), static_cast<double>(half), base}, options.dtype, options.device},
                  [&] { return make_angles(time, half, base, options); });
}

}  // namespace

Tensor rotary(const Tensor& x, RotaryOptions o) {
  check(is_floating(x.dtype()), "rotary: dtype is ", x.dtype(), ", expected f32, f64 or bf16");
  check(x.rank() >= 3, "rotary: the input has shape ", x.shape(), ", expected [..., time, heads, size]");
  const int64_t time = x.size(-3), heads = x.size(-2), size = x.size(-1);
  check(size % 2 == 0, "rotary: heads of size ", size, " in ", x.shape(), " do not divide into pairs");
  check(o.heads >= 0 && o.heads <= heads, "rotary: ", o.heads, " heads of ", x.shape(), " are to be rotated");
  check(o.base > 0, "rotary: base ", o.base, " is not positive");
  constexpr int64_t kLast = int64_t{1} << 32;
  check(o.first >= 0 && o.first <= kLast - time, "rotary: the first position is ", o.first, ", expected 0 to ",
        kLast - time);
  // If rows come one by one, tables are cached with lengths that are powers of two.
  const int64_t rows = o.first == 0 ? time : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(o.first + time)));
  const std::vector<Tensor> table = angles(rows, size / 2, o.base, {acc_dtype(x.dtype()), x.device()});
  const Tensor cosine = detached::narrow(table[0], 0, o.first, time),
               sine = detached::narrow(table[1], 0, o.first, time);
  kernels::RotaryShape shape{x.numel() / std::max<int64_t>(1, time * heads * size),
                             time,
                             heads,
                             size,
                             o.heads ? o.heads : heads,
                             false,
                             o.halves};
  const auto rotation = [&](bool back) {
    shape.back = back;
    return [shape, cosine, sine](const Tensor& t) {
      const Tensor in = detached::contiguous(t), out = empty_like(in);
      kernels::rotary.on(in.device(), shape, out, in, cosine, sine);
      return out;
    };
  };
  return detail::linear_map("rotary", x, rotation(false), rotation(true));
}

}  // namespace isonorm
