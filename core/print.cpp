#include "core/print.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <mutex>
#include <ostream>

#include "core/printed.h"

namespace isonorm {
namespace {

std::mutex options_mutex;
PrintOptions chosen_options;

// A shape, and the rules for the part that is shown.
struct ShownPart {
  const Dims& shape;
  PrintOptions options;

  bool elided(int dim) const {
    return numel(shape, "print") > options.threshold && shape[dim] > 2 * options.edge_items;
  }
};

// Calls see() with the position of each shown element, in row-major order.
void each_shown(const ShownPart& shown, int dim, int64_t at, const std::function<void(int64_t)>& see) {
  const auto& [shape, o] = shown;
  if (dim == shape.rank) return see(at);
  for (int64_t i = 0; i < shape[dim]; ++i) {
    if (i == o.edge_items && shown.elided(dim)) i = shape[dim] - o.edge_items;
    each_shown(shown, dim + 1, at * shape[dim] + i, see);
  }
}

// A number with the fewest digits among those that bf16 rounds to v.
double fewest_digits(double v) {
  for (int n = 0; n < 9; ++n)
    if (double d = 0; read_number(printed("%.*e", n, v), d) && float(bf16(float(d))) == float(v)) return d;
  return v;
}

// A finite number with the digits that its dtype needs to tell it from its neighbours, at most `most` after the
// point, or with `precision` digits.
struct Digits {
  std::string whole, fraction, exponent;  // the exponent with its sign; empty in fixed notation

  Digits(double v, DType dtype, std::chars_format format, int most, int precision = -1) {
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
      if (fraction.size() > static_cast<size_t>(most)) write(number, most);
      fraction.resize(fraction.find_last_not_of('0') + 1);
    };
    dtype == DType::f32 ? shorten(static_cast<float>(v)) : shorten(dtype == DType::bf16 ? fewest_digits(v) : v);
  }
};

// True if numbers are written with an exponent whose absolute values, zeros aside, are in [least, most]. Computed in T,
// as NumPy does.
template <class T> bool is_scientific(T least, T most) {
  return most >= T(sizeof(T) == 8 ? 1e8 : 1e6) || least < T(1e-4) || most / least > T(1000);
}

// Returns a function that writes element i as a cell. All cells have one width; in fixed notation, fractions are padded
// with spaces.
std::function<std::string(int64_t)> floating_cells(const Tensor& x, const ShownPart& shown) {
  const std::vector<double> v = x.to_vector<double>();
  const DType dtype = x.dtype();
  const int digits = shown.options.digits;
  double least = HUGE_VAL, most = 0;
  bool negative_infinity = false, all_finite = true;
  each_shown(shown, 0, 0, [&](int64_t i) {
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
  each_shown(shown, 0, 0, [&](int64_t i) {
    if (!std::isfinite(v[i])) return;
    const Digits d(v[i], dtype, format, digits);
    whole = std::max(whole, d.whole.size());
    fraction = std::max(fraction, d.fraction.size());
    exponent = std::max(exponent, d.exponent.size());
  });
  const size_t tail = 1 + fraction + (scientific ? 1 + exponent : 0);  // length after the whole part
  if (!all_finite) whole = std::max(whole, std::max(tail, size_t{3} + negative_infinity) - tail);
  return [=](int64_t i) -> std::string {
    const auto right = [](size_t width, const std::string& s) { return std::string(width - s.size(), ' ') + s; };
    if (std::isnan(v[i])) return right(whole + tail, "nan");
    if (std::isinf(v[i])) return right(whole + tail, v[i] < 0 ? "-inf" : "inf");
    Digits d(v[i], dtype, format, digits, scientific ? static_cast<int>(fraction) : -1);
    d.fraction.resize(fraction, ' ');
    std::string s = right(whole, d.whole) + '.' + d.fraction;
    if (scientific)
      s += 'e' + d.exponent.substr(0, 1) + std::string(exponent - d.exponent.size(), '0') + d.exponent.substr(1);
    return s;
  };
}

std::function<std::string(int64_t)> integer_cells(const Tensor& x, const ShownPart& shown) {
  const std::vector<int64_t> v = x.to_vector<int64_t>();
  size_t width = 0;
  each_shown(shown, 0, 0, [&](int64_t i) { width = std::max(width, text(v[i]).size()); });
  return [=](int64_t i) {
    const std::string s = text(v[i]);
    return std::string(width - s.size(), ' ') + s;
  };
}

// Writes the sub-array at `at` of dimension `dim` in lines of up to `width` characters. All lines but the first begin
// with `indent` spaces.
std::string nested(const ShownPart& shown, int dim, int64_t at, size_t indent, size_t width,
                   const std::function<std::string(int64_t)>& cell) {
  const auto& [shape, o] = shown;
  if (dim == shape.rank) return cell(at);
  const std::string margin(indent, ' ');
  const bool row = dim + 1 == shape.rank;
  std::string s, line = margin;
  for (int64_t i = 0; i < shape[dim]; ++i) {
    std::string word;
    if (i == o.edge_items && shown.elided(dim))
      word = "...", i = shape[dim] - o.edge_items - 1;
    else
      word = nested(shown, dim + 1, at * shape[dim] + i, indent + 1, width - 1, cell);
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

void set_print_options(const PrintOptions& o) {
  check(o.digits >= 0 && o.digits <= 17, "print: digits is ", o.digits, ", expected 0 to 17");
  check(o.threshold > 0 && o.edge_items > 0, "print: threshold is ", o.threshold, " and edge_items ", o.edge_items,
        ", expected numbers from 1");
  check(o.line_width >= 10, "print: line_width is ", o.line_width, ", expected at least 10");
  const std::lock_guard lock(options_mutex);
  chosen_options = o;
}

PrintOptions print_options() {
  const std::lock_guard lock(options_mutex);
  return chosen_options;
}

std::string to_string(const Tensor& x) {
  if (!x.defined()) return "(undefined tensor)";
  const ShownPart shown{x.shape(), print_options()};
  const std::string values = x.numel() == 0
                                 ? "[]"
                                 : nested(shown, 0, 0, 1, static_cast<size_t>(shown.options.line_width),
                                          is_floating(x.dtype()) ? floating_cells(x, shown) : integer_cells(x, shown));
  return values + text("  ", x.dtype(), ' ', x.shape(), x.device() == kCpu ? std::string() : text(" on ", x.device()));
}

std::ostream& operator<<(std::ostream& os, const Tensor& x) { return os << to_string(x); }

std::ostream& operator<<(std::ostream& os, const Dims& shape) { return os << text(shape); }
std::ostream& operator<<(std::ostream& os, DType dtype) { return os << text(dtype); }
std::ostream& operator<<(std::ostream& os, Device device) { return os << text(device); }

}  // namespace isonorm
