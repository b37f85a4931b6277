#include "equivalence/services/explanation.h"

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

Explanation layer_norm(const Row& x, const Row& dy, double eps) {
  const double d = static_cast<double>(x.size());
  const double mu = sum(x) / d;
  const Row c = map(x, [&](double v) { return v - mu; });
  const Row squares = times(c, c);
  const double var = sum(squares) / d, s = 1 / root(var, eps);
  const Row y = map(c, [&](double v) { return v * s; });
  Steps out;
  out.heading(text("layer_norm of x = ", tuple(x), ", d = ", x.size(), ", eps = ", eps));
  out.heading("forward");
  out.step("mean", text("mu = (", terms(x), ") / ", x.size()), number(mu));
  out.step("centred", "c = x - mu", tuple(c));
  out.step("variance", text("var = (", terms(squares), ") / ", x.size()), number(var));
  out.step("inverse deviation", "s = 1 / sqrt(var + eps)", number(s));
  out.step("result", "y = c s", tuple(y));

  const Row products = times(dy, y);
  const double a = sum(dy) / d, b = sum(products) / d;
  const Row own = map(dy, [&](double v) { return s * v; });
  const Row mean = map(dy, [&](double) { return -s * a; });
  const Row scale = map(y, [&](double v) { return -s * v * b; });
  Row dx(x.size());
  for (size_t i = 0; i < x.size(); ++i) dx[i] = own[i] + mean[i] + scale[i];
  out.heading(text("backward, from dy = ", tuple(dy)));
  out.step("mean of dy", text("a = (", terms(dy), ") / ", x.size()), number(a));
  out.step("mean of dy y", text("b = (", terms(products), ") / ", x.size()), number(b));
  out.step("through the entry itself", "s dy", tuple(own));
  out.step("through the mean", "- s a", tuple(mean));
  out.step("through the deviation", "- s y b", tuple(scale));
  out.step("gradient", "dx = the sum of the three", tuple(dx));
  out.step("its sum (0 in exact arithmetic)", "", number(sum(dx)));
  append_jacobian(out, x.size(), "s ([i = j] - 1/d - y_i y_j / d)",
                  [&](size_t i, size_t j) { return s * ((i == j) - 1 / d - y[i] * y[j] / d); });
  return {y, dx, out.take()};
}

// left_out: number of entries of the full row that are not stored and add nothing to its length: 0 for rms_norm, 1 for
// crms_isometric, whose stored row has the coordinates of a zero-mean row in an orthonormal basis.
Explanation rms_norm(const std::string& name, size_t left_out, const Row& x, const Row& dy, double eps) {
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

  const Row products = times(dy, y);
  const double b = sum(products) / d;
  const Row own = map(dy, [&](double v) { return v / r; });
  const Row scale = map(y, [&](double v) { return -v * b / r; });
  Row dx(x.size());
  for (size_t i = 0; i < x.size(); ++i) dx[i] = own[i] + scale[i];
  out.heading(text("backward, from dy = ", tuple(dy)));
  out.step("mean of dy y", text("b = (", terms(products), ") / ", full), number(b));
  out.step("through the entry itself", "dy / r", tuple(own));
  out.step("through the root", "- y b / r", tuple(scale));
  out.step("gradient", "dx = the sum of the two", tuple(dx));
  out.step("its sum", "", number(sum(dx)));
  append_jacobian(out, x.size(), "([i = j] - y_i y_j / d) / r",
                  [&](size_t i, size_t j) { return ((i == j) - y[i] * y[j] / d) / r; });
  return {y, dx, out.take()};
}

Explanation crms_norm(const Row& x, const Row& dy, double eps) {
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

  const Row products = times(dy, x);
  const double b = sum(products);
  const Row own = map(dy, [&](double v) { return v / r; });
  const Row square = map(x, [&](double v) { return -v * b / (d * r * r * r); });
  const Row last = map(x, [&](double) { return -t * b / (d * r * r * r); });
  Row dx(x.size());
  for (size_t i = 0; i < x.size(); ++i) dx[i] = own[i] + square[i] + last[i];
  out.heading(text("backward, from dy = ", tuple(dy)));
  out.step("product", text("b = <dy, x> = ", terms(products)), number(b));
  out.step("through the entry itself", "dy / r", tuple(own));
  out.step("through its square", "- x b / (d r^3)", tuple(square));
  out.step("through the entry left out", "- t b / (d r^3)", tuple(last));
  out.step("gradient", "dx = the sum of the three", tuple(dx));
  append_jacobian(out, x.size(), "[i = j] / r - x_i (x_j + t) / (d r^3), not symmetric",
                  [&](size_t i, size_t j) { return (i == j) / r - x[i] * (x[j] + t) / (d * r * r * r); });
  return {y, dx, out.take()};
}

}  // namespace

Explanation explain(const std::string& norm, const Row& x, const Row& dy, double eps) {
  check(!x.empty(), "explain: the row is empty");
  check(dy.size() == x.size(), "explain: the row has ", x.size(), " entries, its gradient ", dy.size());
  const streams::FormRow* form = streams::find_row(norm);
  check(form && form->layer_norm_model(), "explain: there is no norm ", norm, ", expected ",
        streams::listed(streams::layer_norm_forms(), " or "));
  if (form->norm == NormKind::layer) return layer_norm(x, dy, eps);
  return form->norm == NormKind::crms ? crms_norm(x, dy, eps) : rms_norm(norm, form->compressed(), x, dy, eps);
}

const reports::Schema<Explanation>& explain_schema() {
  static const reports::Schema<Explanation> schema{"explain",
                                                   "A norm applied to a row, and its gradient: `isonorm explain`.",
                                                   reports::Fields<Explanation>()
                                                       .add("y", &Explanation::y, "the normalised row")
                                                       .add("dx", &Explanation::dx, "gradient of <dy, y> in the row")};
  return schema;
}

}  // namespace isonorm::services
