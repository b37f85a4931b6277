#include "equivalence/services/explanation.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/error.h"
#include "core/printed.h"
#include "streams/stream.h"

namespace isonorm::services {
namespace {

using Row = std::vector<double>;
constexpr size_t kShown = 6;  // a longer row is abbreviated to this number of entries

std::string number(double v) { return printed("%.6g", v == 0 ? 0.0 : v); }

std::string joined(const Row& row, const char* separator) {
  std::string s;
  for (size_t i = 0; i < row.size() && i < kShown; ++i) {
    if (i > 0) s += separator;
    s += number(row[i]);
  }
  if (row.size() > kShown) s += text(separator, "...");
  return s;
}

std::string tuple(const Row& row) { return text("(", joined(row, ", "), ")"); }

// "1 + 2 + 3", with negative terms in brackets.
std::string terms(const Row& row) {
  std::string s;
  for (size_t i = 0; i < row.size() && i < kShown; ++i) {
    if (i > 0) s += " + ";
    s += row[i] < 0 ? text("(", number(row[i]), ")") : number(row[i]);
  }
  return row.size() > kShown ? s + " + ..." : s;
}

Row map(const Row& a, const std::function<double(double)>& f) {
  Row out(a.size());
  for (size_t i = 0; i < a.size(); ++i) out[i] = f(a[i]);
  return out;
}
Row times(const Row& a, const Row& b) {
  Row out(a.size());
  for (size_t i = 0; i < a.size(); ++i) out[i] = a[i] * b[i];
  return out;
}
double sum(const Row& a) {
  double s = 0;
  for (double v : a) s += v;
  return s;
}
// The divisor of a norm.
double root(double mean_square, double eps) {
  const double r = std::sqrt(mean_square + eps);
  check(r > 0 && std::isfinite(r), "explain: a row of mean square ", mean_square, " with eps ", eps,
        " cannot be divided by its root");
  return r;
}

// Collects lines "name   formula   = value" and aligns their columns.
class Steps {
 public:
  void heading(const std::string& title) { text_ += text(text_.empty() ? "" : "\n", title, "\n"); }
  void step(const std::string& name, const std::string& formula, const std::string& value) {
    text_ += "  ";
    column(name, 34);
    column(formula, 44);
    text_ += " = ";
    text_ += value;
    text_ += '\n';
  }
  void note(const std::string& line) { text_ += text("  ", line, "\n"); }
  std::string take() { return std::move(text_); }

 private:
  void column(const std::string& s, size_t width) {
    text_ += s;
    for (size_t i = s.size(); i < width; ++i) text_ += ' ';
  }
  std::string text_;
};

// The Jacobian: entry (i, j) is d y_i / d x_j. Nothing if it does not fit on a screen.
void append_jacobian(Steps& steps, size_t n, const std::string& formula,
                     const std::function<double(size_t, size_t)>& entry) {
  if (n > kShown) return;
  steps.heading(text("Jacobian, row i, column j: dy_i/dx_j = ", formula));
  for (size_t i = 0; i < n; ++i) {
    std::string line;
    for (size_t j = 0; j < n; ++j) line += printed("%12.6f", entry(i, j));
    steps.note(line);
  }
}

// A norm's gain and bias, and the gradient dz of its result z = gain y + bias. Without them z is y.
struct Affine {
  Row gain, bias, dz;
  bool given;

  Affine(const ExplainOptions& o, size_t n, size_t channels, const Row& dz)
      : gain(o.gain), bias(o.bias), dz(dz), given(!gain.empty() || !bias.empty()) {
    check(dz.size() == n, "explain: the row has ", n, " entries, its gradient ", dz.size());
    for (const auto& [name, row] : {std::pair("gain", &gain), std::pair("bias", &bias)})
      check(row->empty() || row->size() == channels, "explain: the ", name, " has ", row->size(), " entries, expected ",
            channels);
    if (gain.empty()) gain.assign(channels, 1);
    if (bias.empty()) bias.assign(channels, 0);
    gain.resize(n, gain[0]);  // batch_norm: the channel's number for every value
    bias.resize(n, bias[0]);
  }
  Row dy() const { return times(gain, dz); }

  void append_forward(Steps& out, const Row& y) const {
    if (!given) return;
    Row z = times(gain, y);
    for (size_t i = 0; i < z.size(); ++i) z[i] += bias[i];
    out.step("with gain and bias", "z = gain y + bias", tuple(z));
  }
  void append_backward(Steps& out) const {
    if (!given) return out.heading(text("backward, from dy = ", tuple(dz)));
    out.heading(text("backward, from dz = ", tuple(dz)));
    out.step("gradient of y", "dy = gain dz", tuple(dy()));
  }
  // Fills in the gradients of gain and bias.
  void finish(Explanation& e, bool one_channel) const {
    if (!given) return;
    const auto summed = [&](Row row) { return one_channel ? Row{sum(row)} : row; };
    e.dgain = summed(times(dz, e.y));
    e.dbias = summed(dz);
    Steps out;
    out.heading("gradients of gain and bias");
    out.step("gain", one_channel ? "the sum of dz y" : "dz y", tuple(e.dgain));
    out.step("bias", one_channel ? "the sum of dz" : "dz", tuple(e.dbias));
    e.text += '\n' + out.take();
  }
};

constexpr char kBatchNorm[] = "batch_norm";

// batch_norm: what the module keeps for eval(), after one batch, with momentum 0.1, from mean 0 and variance 1.
void append_running(Steps& out, double n, double mu, double var) {
  out.heading("running statistics, for eval(), after this batch");
  out.step("running mean", "0.9 * 0 + 0.1 mu", number(0.1 * mu));
  out.step("unbiased variance", text("u = var ", n, " / ", n - 1), number(var * n / (n - 1)));
  out.step("running variance", "0.9 * 1 + 0.1 u", number(0.9 + 0.1 * var * n / (n - 1)));
}

// layer_norm of a row; batch_norm of one channel's values, which is the same arithmetic.
Explanation layer_norm(bool batch, const Row& x, const Affine& affine, double eps) {
  const Row dy = affine.dy();
  const double d = static_cast<double>(x.size());
  const double mu = sum(x) / d;
  const Row c = map(x, [&](double v) { return v - mu; });
  const Row squares = times(c, c);
  const double var = sum(squares) / d, s = 1 / root(var, eps);
  const Row y = map(c, [&](double v) { return v * s; });
  Steps out;
  out.heading(text(batch ? "batch_norm of one channel over the batch, x = " : "layer_norm of x = ", tuple(x),
                   batch ? ", n = " : ", d = ", x.size(), ", eps = ", eps));
  out.heading("forward");
  out.step("mean", text("mu = (", terms(x), ") / ", x.size()), number(mu));
  out.step("centred", "c = x - mu", tuple(c));
  out.step("variance", text("var = (", terms(squares), ") / ", x.size()), number(var));
  out.step("inverse deviation", "s = 1 / sqrt(var + eps)", number(s));
  out.step("result", "y = c s", tuple(y));
  affine.append_forward(out, y);
  if (batch) append_running(out, d, mu, var);

  const Row products = times(dy, y);
  const double a = sum(dy) / d, b = sum(products) / d;
  const Row own = map(dy, [&](double v) { return s * v; });
  const Row mean = map(dy, [&](double) { return -s * a; });
  const Row scale = map(y, [&](double v) { return -s * v * b; });
  Row dx(x.size());
  for (size_t i = 0; i < x.size(); ++i) dx[i] = own[i] + mean[i] + scale[i];
  affine.append_backward(out);
  out.step("mean of dy", text("a = (", terms(dy), ") / ", x.size()), number(a));
  out.step("mean of dy y", text("b = (", terms(products), ") / ", x.size()), number(b));
  out.step("through the entry itself", "s dy", tuple(own));
  out.step("through the mean", "- s a", tuple(mean));
  out.step("through the deviation", "- s y b", tuple(scale));
  out.step("gradient", "dx = the sum of the three", tuple(dx));
  out.step("its sum (0 in exact arithmetic)", "", number(sum(dx)));
  append_jacobian(out, x.size(), "s ([i = j] - 1/d - y_i y_j / d)",
                  [&](size_t i, size_t j) { return s * ((i == j) - 1 / d - y[i] * y[j] / d); });
  return {y, dx, {}, {}, {}, out.take()};
}

// left_out: number of entries of the full row that are not stored and add nothing to its length: 0 for rms_norm, 1 for
// crms_isometric, whose stored row has the coordinates of a zero-mean row in an orthonormal basis.
Explanation rms_norm(const std::string& name, size_t left_out, const Row& x, const Affine& affine, double eps) {
  const Row dy = affine.dy();
  const size_t full = x.size() + left_out;
  const double d = static_cast<double>(full);
  const Row squares = times(x, x);
  const double mean_square = sum(squares) / d, r = root(mean_square, eps);
  const Row y = map(x, [&](double v) { return v / r; });
  Steps out;
  out.heading(
      text(name, left_out > 0 ? " of the stored row x = " : " of x = ", tuple(x), ", d = ", full, ", eps = ", eps));
  out.heading("forward");
  out.step("mean square", text("m = (", terms(squares), ") / ", full), number(mean_square));
  out.step("root", "r = sqrt(m + eps)", number(r));
  out.step("result", "y = x / r", tuple(y));
  affine.append_forward(out, y);

  const Row products = times(dy, y);
  const double b = sum(products) / d;
  const Row own = map(dy, [&](double v) { return v / r; });
  const Row scale = map(y, [&](double v) { return -v * b / r; });
  Row dx(x.size());
  for (size_t i = 0; i < x.size(); ++i) dx[i] = own[i] + scale[i];
  affine.append_backward(out);
  out.step("mean of dy y", text("b = (", terms(products), ") / ", full), number(b));
  out.step("through the entry itself", "dy / r", tuple(own));
  out.step("through the root", "- y b / r", tuple(scale));
  out.step("gradient", "dx = the sum of the two", tuple(dx));
  out.step("its sum", "", number(sum(dx)));
  append_jacobian(out, x.size(), "([i = j] - y_i y_j / d) / r",
                  [&](size_t i, size_t j) { return ((i == j) - y[i] * y[j] / d) / r; });
  return {y, dx, {}, {}, {}, out.take()};
}

Explanation crms_norm(const Row& x, const Affine& affine, double eps) {
  const Row dy = affine.dy();
  const double d = static_cast<double>(x.size()) + 1, t = sum(x);
  Row full = x;
  full.push_back(-t);
  const Row squares = times(full, full);
  const double mean_square = sum(squares) / d, r = root(mean_square, eps);
  const Row y = map(x, [&](double v) { return v / r; });
  Steps out;
  out.heading(text("crms_norm of the stored row x = ", tuple(x), ", d = ", full.size(), ", eps = ", eps));
  out.heading("forward");
  out.step("sum", text("t = ", terms(x)), number(t));
  out.step("the full row has mean 0", "(x, -t)", tuple(full));
  out.step("its mean square", text("m = (", terms(squares), ") / ", full.size()), number(mean_square));
  out.step("root", "r = sqrt(m + eps)", number(r));
  out.step("result", "y = x / r", tuple(y));
  affine.append_forward(out, y);

  const Row products = times(dy, x);
  const double b = sum(products);
  const Row own = map(dy, [&](double v) { return v / r; });
  const Row square = map(x, [&](double v) { return -v * b / (d * r * r * r); });
  const Row last = map(x, [&](double) { return -t * b / (d * r * r * r); });
  Row dx(x.size());
  for (size_t i = 0; i < x.size(); ++i) dx[i] = own[i] + square[i] + last[i];
  affine.append_backward(out);
  out.step("product", text("b = <dy, x> = ", terms(products)), number(b));
  out.step("through the entry itself", "dy / r", tuple(own));
  out.step("through its square", "- x b / (d r^3)", tuple(square));
  out.step("through the entry left out", "- t b / (d r^3)", tuple(last));
  out.step("gradient", "dx = the sum of the three", tuple(dx));
  append_jacobian(out, x.size(), "[i = j] / r - x_i (x_j + t) / (d r^3), not symmetric",
                  [&](size_t i, size_t j) { return (i == j) / r - x[i] * (x[j] + t) / (d * r * r * r); });
  return {y, dx, {}, {}, {}, out.take()};
}

// <dy, y> in arithmetic of T, for a norm that subtracts the mean of x (centred), reads t = sum x, the entry left out
// (crms), or divides by a number of entries other than x.size() (full).
struct Forward {
  bool centred, crms;
  size_t full;
  double eps;

  template <class T> T operator()(std::vector<T> x, const Row& dy) const {
    T total = 0, squares = 0, result = 0;
    for (T v : x) total += v;
    if (centred)
      for (T& v : x) v -= total / static_cast<T>(full);
    for (T v : x) squares += v * v;
    if (crms) squares += total * total;
    const T r = static_cast<T>(root(squares / static_cast<T>(full), static_cast<T>(eps)));
    for (size_t i = 0; i < x.size(); ++i) result += static_cast<T>(dy[i]) * (x[i] / r);
    return result;
  }
};

// The largest |(f(x + h e_i) - f(x - h e_i)) / 2h - dx_i|.
template <class T> double difference_error(const Forward& f, const Row& x, const Row& dy, const Row& dx, double h) {
  const std::vector<T> row(x.begin(), x.end());
  double error = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    std::vector<T> up = row, down = row;
    up[i] += static_cast<T>(h);
    down[i] -= static_cast<T>(h);
    error = std::max(error, std::abs((f(up, dy) - f(down, dy)) / static_cast<T>(2 * h) - dx[i]));
  }
  return error;
}

void append_gradcheck(Explanation& e, const Forward& f, const Row& x, const Row& dy) {
  Steps out;
  out.heading("two-point differences (f(x + h e_i) - f(x - h e_i)) / 2h of f = <dy, y>: the largest distance from dx");
  out.note("       h      in f64      in f32");
  for (const double h : {1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10}) {
    e.gradcheck.push_back({h, difference_error<double>(f, x, dy, e.dx, h), difference_error<float>(f, x, dy, e.dx, h)});
    out.note(printed("%8.0e", h) + printed("%12.1e", e.gradcheck.back().f64) +
             printed("%12.1e", e.gradcheck.back().f32));
  }
  out.note("A large h leaves a term of h^2, a small one divides rounding u by h: the least error is near h = u^(1/3),");
  out.note(text(printed("%.0e", std::cbrt(0x1p-53)), " in f64 and ", printed("%.0e", std::cbrt(0x1p-24)), " in f32."));
  e.text += '\n' + out.take();
}

}  // namespace

std::string explained_norms() { return text(kBatchNorm, ", ", streams::listed(streams::layer_norm_forms(), " or ")); }

bool is_explained(const std::string& norm) {
  const streams::FormRow* form = streams::find_row(norm);
  return norm == kBatchNorm || (form && form->layer_norm_model());
}

Explanation explain(const std::string& norm, const Row& x, const Row& dz, double eps, const ExplainOptions& options) {
  check(is_explained(norm), "explain: there is no norm ", norm, ", expected ", explained_norms());
  const bool batch = norm == kBatchNorm;
  check(!x.empty(), "explain: the row is empty");
  check(!batch || x.size() > 1, "explain: batch_norm of one value has no variance, expected at least 2");
  const streams::FormRow* form = streams::find_row(norm);
  const bool crms = form && form->norm == NormKind::crms, centred = batch || form->norm == NormKind::layer;
  const size_t left_out = form && form->compressed() ? 1 : 0;
  const Affine affine(options, x.size(), batch ? 1 : x.size(), dz);
  Explanation e = centred ? layer_norm(batch, x, affine, eps)
                  : crms  ? crms_norm(x, affine, eps)
                          : rms_norm(norm, left_out, x, affine, eps);
  affine.finish(e, batch);
  if (options.gradcheck) append_gradcheck(e, {centred, crms, x.size() + left_out, eps}, x, affine.dy());
  return e;
}

const reports::Schema<Explanation>& explain_schema() {
  static const reports::Schema<Explanation> schema{
      "explain", "A norm applied to a row, and its gradient: `isonorm explain`.",
      reports::Fields<Explanation>()
          .add("y", &Explanation::y, "the normalised row")
          .add("dx", &Explanation::dx, "gradient of <dz, z> in the row, for the result z = gain y + bias")
          .add("dgain", &Explanation::dgain, "gradient in the gain; empty if there is neither gain nor bias")
          .add("dbias", &Explanation::dbias, "gradient in the bias; empty likewise")
          .add("gradcheck", &Explanation::gradcheck, "errors of two-point differences by step, if asked for",
               reports::Fields<DifferenceError>()
                   .add("step", &DifferenceError::step, "h of (f(x + h) - f(x - h)) / 2h")
                   .add("f64", &DifferenceError::f64, "largest distance from dx, with a forward in f64")
                   .add("f32", &DifferenceError::f32, "largest distance from dx, with a forward in f32"))};
  return schema;
}

}  // namespace isonorm::services
