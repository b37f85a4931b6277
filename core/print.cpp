#include "core/print.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <ostream>

#include "core/printed.h"

namespace isonorm {
namespace {

// As numpy.set_printoptions() has them.
constexpr int64_t kThreshold = 1000;  // elements that are all shown
constexpr int64_t kEdge = 3;          // entries shown at either end of an elided dimension
constexpr size_t kLineWidth = 75;
constexpr size_t kPrecision = 8;  // digits behind the point

bool elided(const Dims& shape, int dim) { return numel(shape, "print") > kThreshold && shape[dim] > 2 * kEdge; }

// Calls see() with the place of each element that is shown, in row-major order.
void each_shown(const Dims& shape, int dim, int64_t at, const std::function<void(int64_t)>& see) {
  if (dim == shape.rank) return see(at);
  for (int64_t i = 0; i < shape[dim]; ++i) {
    if (i == kEdge && elided(shape, dim)) i = shape[dim] - kEdge;
    each_shown(shape, dim + 1, at * shape[dim] + i, see);
  }
}

// Of the numbers that bf16 rounds to v, one with the fewest digits.
double fewest_digits(double v) {
  for (int n = 0; n < 9; ++n)
    if (double d = 0; read_number(printed("%.*e", n, v), d) && float(bf16(float(d))) == float(v)) return d;
  return v;
}

// A finite number with as many digits as its dtype needs to tell it from its neighbours, up to kPrecision behind the point,
// or with `precision` of them.
struct Digits {
  std::string whole, fraction, exponent;  // the exponent with its sign, empty in fixed notation

  Digits(double v, DType dtype, std::chars_format format, int precision = -1) {
    const auto write = [&](auto number, auto... digits) {
      const std::string s = number_text(number, format, digits...);
      const size_t e = std::min(s.find('e'), s.size()), point = std::min(s.find('.'), e);
      whole = s.substr(0, point);
      fraction = point < e ? s.substr(point + 1, e - point - 1) : "";
      if (e < s.size()) exponent = s.substr(e + 1);
    };
    const auto shorten = [&](auto number) {
      if (precision >= 0) return write(number, precision);
      write(number);
      if (fraction.size() > kPrecision) write(number, int{kPrecision});
      fraction.resize(fraction.find_last_not_of('0') + 1);
    };
    dtype == DType::f32 ? shorten(static_cast<float>(v)) : shorten(dtype == DType::bf16 ? fewest_digits(v) : v);
  }
};

// Whether numbers whose absolute values, but 0, lie in [least, most] are written with an exponent. As NumPy, in T.
template <class T> bool is_scientific(T least, T most) {
  return most >= T(sizeof(T) == 8 ? 1e8 : 1e6) || least < T(1e-4) || most / least > T(1000);
}

// The elements as cells of one width, but in fixed notation without the spaces that a shown tensor has none of.
std::function<std::string(int64_t)> floating_cells(const Tensor& x) {
  const std::vector<double> v = x.to_vector<double>();
  const DType dtype = x.dtype();
  double least = HUGE_VAL, most = 0;
  bool negative_infinity = false, all_finite = true;
  each_shown(x.shape(), 0, 0, [&](int64_t i) {
    negative_infinity |= v[i] == -HUGE_VAL;
    all_finite &= std::isfinite(v[i]);
    if (!std::isfinite(v[i]) || v[i] == 0) return;
    least = std::min(least, std::abs(v[i]));
    most = std::max(most, std::abs(v[i]));
  });
  const bool scientific =
      most > 0 && (dtype == DType::f64 ? is_scientific(least, most) : is_scientific(float(least), float(most)));
  const auto format = scientific ? std::chars_format::scientific : std::chars_format::fixed;
  size_t whole = 0, fraction = 0, exponent = 0;
  each_shown(x.shape(), 0, 0, [&](int64_t i) {
    if (!std::isfinite(v[i])) return;
    const Digits d(v[i], dtype, format);
    whole = std::max(whole, d.whole.size());
    fraction = std::max(fraction, d.fraction.size());
    exponent = std::max(exponent, d.exponent.size());
  });
  const size_t tail = 1 + fraction + (scientific ? 1 + exponent : 0);  // behind the whole part
  if (!all_finite) whole = std::max(whole, std::max(tail, size_t{3} + negative_infinity) - tail);
  return [=](int64_t i) -> std::string {
    const auto right = [](size_t width, const std::string& s) { return std::string(width - s.size(), ' ') + s; };
    if (std::isnan(v[i])) return right(whole + tail, "nan");
    if (std::isinf(v[i])) return right(whole + tail, v[i] < 0 ? "-inf" : "inf");
    Digits d(v[i], dtype, format, scientific ? static_cast<int>(fraction) : -1);
    d.fraction.resize(fraction, ' ');
    std::string s = right(whole, d.whole) + '.' + d.fraction;
    if (scientific)
      s += 'e' + d.exponent.substr(0, 1) + std::string(exponent - d.exponent.size(), '0') + d.exponent.substr(1);
    return s;
  };
}

std::function<std::string(int64_t)> integer_cells(const Tensor& x) {
  const std::vector<int64_t> v = x.to_vector<int64_t>();
  size_t width = 0;
  each_shown(x.shape(), 0, 0, [&](int64_t i) { width = std::max(width, text(v[i]).size()); });
  return [=](int64_t i) {
    const std::string s = text(v[i]);
    return std::string(width - s.size(), ' ') + s;
  };
}

// The sub-array at `at` of dimension `dim`, in lines of up to `width` characters, but the first, that begin with `indent` spaces.
std::string nested(const Dims& shape, int dim, int64_t at, size_t indent, size_t width,
                   const std::function<std::string(int64_t)>& cell) {
  if (dim == shape.rank) return cell(at);
  const std::string margin(indent, ' ');
  const bool row = dim + 1 == shape.rank;
  std::string s, line = margin;
  for (int64_t i = 0; i < shape[dim]; ++i) {
    std::string word;
    if (i == kEdge && elided(shape, dim))
      word = "...", i = shape[dim] - kEdge - 1;
    else
      word = nested(shape, dim + 1, at * shape[dim] + i, indent + 1, width - 1, cell);
    if (i + 1 < shape[dim]) word += ',';
    if (!row) {
      s += margin + word + (i + 1 < shape[dim] ? std::string(shape.rank - dim - 1, '\n') : "");
      continue;
    }
    if (line.size() + word.size() > width - (i + 1 < shape[dim] ? 0 : 1) && line.size() > indent) {
      line.resize(line.find_last_not_of(' ') + 1);
      s += line + '\n';
      line = margin;
    }
    line += word + (i + 1 < shape[dim] ? " " : "");
  }
  if (row) s += line;
  return '[' + s.substr(indent) + ']';
}

}  // namespace

std::string to_string(const Tensor& x) {
  if (!x.defined()) return "(undefined tensor)";
  const std::string values = x.numel() == 0 ? "[]"
                                            : nested(x.shape(), 0, 0, 1, kLineWidth,
                                                     is_floating(x.dtype()) ? floating_cells(x) : integer_cells(x));
  return values + text("  ", x.dtype(), ' ', x.shape(), x.device() == kCpu ? std::string() : text(" on ", x.device()));
}

std::ostream& operator<<(std::ostream& os, const Tensor& x) { return os << to_string(x); }

std::ostream& operator<<(std::ostream& os, const Dims& shape) { return os << text(shape); }
std::ostream& operator<<(std::ostream& os, DType dtype) { return os << text(dtype); }
std::ostream& operator<<(std::ostream& os, Device device) { return os << text(device); }

}  // namespace isonorm
