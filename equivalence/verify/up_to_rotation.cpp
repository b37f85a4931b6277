#include "equivalence/verify/up_to_rotation.h"

#include <algorithm>
#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/printed.h"
#include "equivalence/convert/state.h"
#include "equivalence/convert/rows.h"
#include "streams/rotation.h"
#include "streams/stream.h"
#include "training/steps/loop.h"

namespace isonorm::equivalence {
namespace {

using streams::Form;
using streams::Plan;

constexpr int64_t kRows = 4096;     // in memory in f64 at a time
constexpr double kLargest = 1e150;  // the largest entry whose square f64 holds
constexpr int kIterations = 50;  // for a smallest eigenvector: the gap to the next is wide, or the vector is not used
constexpr TensorOptions kDouble{DType::f64};

// Cholesky decomposition L L^T of a symmetric positive definite matrix [d, d].
class Cholesky {
 public:
  explicit Cholesky(const Tensor& matrix) : d_(matrix.size(0)), l_(matrix.to_vector<double>()) {
    for (int64_t i = 0; i < d_; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        double rest = at(i, j);
        for (int64_t k = 0; k < j; ++k) rest -= at(i, k) * at(j, k);
        at(i, j) = i == j ? std::sqrt(rest) : rest / at(j, j);
      }
  }

  // Solves L L^T X = B [d, m].
  Tensor solve(const Tensor& b) const {
    const int64_t m = b.size(1);
    std::vector<double> x = b.to_vector<double>();
    const auto take = [&](int64_t to, int64_t from, double factor) {
      for (int64_t c = 0; c < m; ++c) x[to * m + c] -= factor * x[from * m + c];
    };
    const auto divide = [&](int64_t row) {
      for (int64_t c = 0; c < m; ++c) x[row * m + c] /= at(row, row);
    };
    for (int64_t i = 0; i < d_; divide(i++))
      for (int64_t k = 0; k < i; ++k) take(i, k, at(i, k));
    for (int64_t i = d_ - 1; i >= 0; --i) {
      divide(i);
      for (int64_t k = 0; k < i; ++k) take(k, i, at(i, k));
    }
    return from_vector(x, b.shape());
  }

 private:
  double at(int64_t i, int64_t j) const { return l_[i * d_ + j]; }
  double& at(int64_t i, int64_t j) { return l_[i * d_ + j]; }

  int64_t d_;
  std::vector<double> l_;
};

double trace(const Tensor& m) { return sum(m * eye(m.size(0), -1, kDouble)).item(); }

// The rounding error, in f64, of a sum of squares, and of the squares of a direction.
double rounding_of(const Tensor& products) {
  return 2 * std::sqrt(static_cast<double>(products.size(0))) * epsilon(DType::f64) * trace(products);
}

struct Direction {
  double square;  // of the rows' components along it
  Tensor vector;  // [d, 1], of length 1
};

// The direction along which the rows with these products are smallest, by inverse iteration. Its square is exact to
// rounding of the products.
Direction least(const Tensor& products) {
  const int64_t d = products.size(0);
  const Cholesky factor(products + eye(d, -1, kDouble) * rounding_of(products));
  Generator generator{1, 0};
  Tensor v = randn({d, 1}, kDouble, generator);
  for (int i = 0; i < kIterations; ++i) {
    v = factor.solve(v);
    v = v / norm(v).item();
  }
  return {sum(v * matmul(products, v)).item(), v};
}

// Sums over the rows of both, each row in units of the rounding error of its entries.
class Finder {
 public:
  explicit Finder(int64_t d)
      : d_(d), of_a_(zeros({d, d}, kDouble)), of_b_(zeros({d, d}, kDouble)), of_both_(zeros({d, d}, kDouble)) {}

  // Adds rows of the two, stored in these formats.
  void add(const Tensor& a, const Tensor& b, NumberFormat of_a, NumberFormat of_b) {
    const double unit = epsilon(coarser(of_a, of_b)) / 2;
    const double step = std::max({smallest_step(of_a), smallest_step(of_b), 1e-300});
    for (int64_t at = 0; at < a.size(0); at += kRows) {
      const auto rows = [&](const Tensor& t) {
        return narrow(t, 0, at, std::min(kRows, t.size(0) - at)).to(DType::f64);
      };
      Tensor x = rows(a), y = rows(b);
      const Tensor length = norm(x, {1}, true), rounding = clamp_min(length * unit, step);
      x = x / rounding, y = y / rounding;
      rows_ += static_cast<int64_t>(sum(ne(length, 0).to(DType::f64)).item());
      of_a_ = of_a_ + matmul(transpose(x, 0, 1), x);
      of_b_ = of_b_ + matmul(transpose(y, 0, 1), y);
      of_both_ = of_both_ + matmul(transpose(x, 0, 1), y);
    }
  }

  // Finds Q and the error of an entry of x Q, relative to |x|. Returns the reason if there is none.
  std::string find(Tensor& rotation, double& error) {
    if (rows_ == 0) return "all their writers and readers are 0";
    const double rounds = rounding_of(of_a_);
    // If all rows have a direction only by rounding, their squares along it are below one per row.
    const auto seen = [&](const Direction& v) { return v.square > static_cast<double>(rows_) + rounds; };
    Direction v = least(of_a_);
    if (!seen(v)) {
      const Direction w = least(of_b_);
      const double size = trace(of_a_) / static_cast<double>(d_);
      of_a_ = of_a_ + matmul(v.vector, transpose(v.vector, 0, 1)) * size;
      of_both_ = of_both_ + matmul(v.vector, transpose(w.vector, 0, 1)) * size;
      v = least(of_a_);
    }
    if (!seen(v))
      return text("their rows do not reach ", d_ - 1, " of ", d_, " directions, and do not say how the others turn");
    const Tensor solution = Cholesky(of_a_).solve(of_both_);
    const double off = streams::off_orthogonal(solution);
    if (!(off < 0.5))
      return text(
          "the least-squares map between the rows of the two is no rotation: Q^T Q - I has an "
          "entry of ",
          scientific(off));
    rotation = streams::nearest_orthogonal(solution);
    error = 8 / std::sqrt(v.square) + rounds / v.square;
    if (error * std::sqrt(static_cast<double>(d_)) < 1) return "";
    return text("rounding leaves the rotation open to ", scientific(error),
                " of a row's length, as much as an entry has");
  }

  int64_t rows() const { return rows_; }

 private:
  int64_t d_, rows_ = 0;
  Tensor of_a_, of_b_, of_both_;  // X^T X, Y^T Y, X^T Y
};

// A norm without centring depends only on a row's length, so the mean does not matter.
void forget_means(streams::Plan& plan) { plan.form = streams::uncentred(plan.form); }

}  // namespace

std::string not_rotatable(const streams::Plan& a, const streams::Plan& b) {
  try {
    check_rotatable(a), check_rotatable(b);
  } catch (const Error& e) {
    const std::string what = e.what();
    return what.substr(what.starts_with("rotate: ") ? 8 : 0);
  }
  if (row_of(a.form).norm != row_of(b.form).norm || a.width != b.width)
    return text("their streams are ", name_of(a.form), " of width ", a.width, " and ", name_of(b.form), " of width ",
                b.width);
  const auto scaled = [](const streams::Plan::Writer& w) { return !w.scale.empty(); };
  return std::ranges::any_of(a.writers, scaled) || std::ranges::any_of(b.writers, scaled)
             ? "a layer scale acts on single coordinates"
             : "";
}

RotationComparison compare_up_to_rotation(const LazyState& a, streams::Plan plan_a, const LazyState& b,
                                          streams::Plan plan_b, bool readers) {
  NoGrad no_grad;
  const std::string why_not = not_rotatable(plan_a, plan_b);
  check(why_not.empty(), "verify: the two cannot be compared up to a rotation: ", why_not);
  RotationComparison result;
  const auto not_found = [&](std::string reason) {
    result.found = "rotation: none was found", result.entries.reason = std::move(reason);
    if (readers && result.entries.finite && result.entries.comparable)
      result.readers = compare_streams(a, plan_a, b, plan_b, &result.deviations);
    return result;
  };
  // The rows of a tensor. `why` gets the reason if they cannot be used.
  const auto rows = [&](const LazyState& state, const Plan& plan, const std::string& name, std::string& why) {
    TensorMap one;
    one.add(name, detach(state.read(name)));
    if (readers) check_values(one, plan);
    const Tensor& t = one.at(name);
    result.entries.finite = training::is_finite(t);
    if (!(largest_entry(t.to(DType::f64)) < kLargest))
      why = text("'", name, "' holds NaN, infinity or an entry above ", kLargest);
    const Plan::Reader* reader = plan.reader(name);
    return by_rows(t, plan.dim_of(name), reader ? reader->parts : 1);
  };
  std::vector<std::string> names;  // writers and readers of both
  for (const Plan::Writer& w : plan_a.writers)
    if (plan_b.writer(w.name)) names.push_back(w.name);
  for (const Plan::Reader& r : plan_a.readers)
    if (const Plan::Reader* other = plan_b.reader(r.name); other && !r.tied() && !other->tied())
      names.push_back(r.name);
  Finder finder(plan_a.stored_width());
  for (const std::string& name : names) {
    std::string why;
    const Tensor x = rows(a, plan_a, name, why);
    if (!why.empty()) return not_found(why);
    const Tensor y = rows(b, plan_b, name, why);
    if (!why.empty()) return not_found(why);
    result.entries.comparable = x.shape() == y.shape();
    if (!result.entries.comparable)
      return not_found(text("'", name, "' has ", x.shape(), " entries in the first and ", y.shape(), " in the second"));
    finder.add(x, y, a.format(name), b.format(name));
  }
  streams::Plan turned = plan_a, other = plan_b;
  forget_means(turned), forget_means(other);
  if (const std::string why = finder.find(turned.rotation, turned.rotation_error); !why.empty()) return not_found(why);
  if (readers)
    static_cast<StateComparison&>(result) = compare_states(a, turned, b, other);
  else
    result.entries = compare_entries(a, turned, b, other);
  result.found = text("rotation: found from ", finder.rows(), " rows of ", names.size(), " tensors, to ",
                      scientific(turned.rotation_error), " of a row's length, and orthogonal to ",
                      scientific(streams::off_orthogonal(turned.rotation)));
  return result;
}

}  // namespace isonorm::equivalence
