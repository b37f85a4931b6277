#include "io/number_format.h"

#include "core/system/parallel.h"
#include "core/view.h"

namespace isonorm {
namespace {

// x rounded to F16: to infinity from half a step beyond the largest number on.
float nearest_half(double x) {
  const double size = std::abs(x);
  if (!(size < 65520)) return static_cast<float>(size >= 65520 ? std::copysign(INFINITY, x) : x);
  // The spacing of doubles at `ruler` is the spacing of F16 numbers at x, because ruler is 2^42 times x's binade (at
  // least the smallest normal one). Adding and subtracting it rounds x to that spacing.
  const uint64_t binade = std::max(std::bit_cast<uint64_t>(size) >> 52, uint64_t{1023 - 14});
  const double ruler = std::bit_cast<double>((binade + 42) << 52);
  return static_cast<float>(std::copysign((size + ruler) - ruler, x));
}

// The largest number of the format if it had `more` additional digits.
double end_of(NumberFormat f, int more) { return std::ldexp(2 - std::ldexp(2.0, -f.digits() - more), f.highest() - 1); }

// The first finite entry of x whose size is at least `size`; 0 if there is none.
double first_from(const Tensor& x, double size) {
  return visit_floating(x.dtype(), "round", [&]<class T>() {
    const T* from = x.data<T>();
    for (int64_t i = 0; i < x.numel(); ++i)
      if (const auto number = static_cast<double>(from[i]); std::abs(number) >= size && std::isfinite(number))
        return number;
    return 0.0;
  });
}

Tensor in_half(const Tensor& x) {
  const Tensor y = empty(x.shape(), {DType::f32});
  float* to = y.mutable_data<float>();
  visit_floating(x.dtype(), "round", [&]<class T>() {
    const T* from = x.data<T>();
    parallel_for(x.numel(), 1 << 14, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = nearest_half(static_cast<double>(from[i]));
    });
  });
  return y;
}

}  // namespace

std::optional<NumberFormat> format_named(const std::string& name) {
  for (NumberFormat f :
       {NumberFormat(DType::f32), NumberFormat(DType::f64), NumberFormat(DType::bf16), NumberFormat(DType::f32, true)})
    if (name == name_of(f)) return f;
  return {};
}

const char* name_of(NumberFormat f) { return f.half ? "f16" : name_of(f.dtype); }

double epsilon(NumberFormat f) { return f.half ? 0x1p-10 : epsilon(f.dtype); }

NumberFormat coarser(NumberFormat a, NumberFormat b) { return epsilon(a) >= epsilon(b) ? a : b; }

double smallest_step(NumberFormat f) { return Steps(f).at(0); }

double largest_number(NumberFormat f) { return end_of(f, 0); }

Tensor rounded(const Tensor& x, NumberFormat f, const std::string& name) {
  if (!f.half && f.dtype == x.dtype()) return detach(x);
  const Tensor packed = detached::contiguous(x);
  const double beyond = first_from(packed, end_of(f, 1));  // the first number that rounds to infinity
  check(beyond == 0, "'", name, "' holds ", beyond, ", which does not fit ", name_of(f), ": its largest number is ",
        largest_number(f));
  return f.half ? in_half(packed) : detached::to(packed, f.dtype);
}

}  // namespace isonorm
