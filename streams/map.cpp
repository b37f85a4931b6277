#include "streams/map.h"

#include <cmath>
#include <optional>

#include "autograd/ops/pointwise.h"

namespace isonorm::streams {

double total(const std::vector<double>& x) {
  double sums[4] = {};
  size_t i = 0;
  for (; i + 4 <= x.size(); i += 4)
    for (size_t j = 0; j < 4; ++j) sums[j] += x[i + j];
  for (; i < x.size(); ++i) sums[0] += x[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

namespace {

using Row = std::vector<double>;

void shift(Row& x, double by) {
  for (double& v : x) v += by;
}

// The maps of coordinates.h, applied to one row. sign = -1: the map itself; +1: the map with the absolute values of its
// matrix.
void recentre_row(Row& x, double sign) { shift(x, sign * total(x) / static_cast<double>(x.size())); }

void compress_row(Row& x, double sign) { recentre_row(x, sign), x.pop_back(); }

void expand_row(Row& v, double sign) { v.push_back(sign * total(v)); }

void compress_reader_row(Row& a, double sign) {
  const double last = a.back();
  a.pop_back(), shift(a, sign * last);
}

void expand_reader_row(Row& b, double sign) {
  const double share = sign * total(b) / static_cast<double>(b.size() + 1);
  shift(b, share), b.push_back(share);
}

// Multiplies by the matrix of the basis.
void times_basis(Row& x, const Basis& basis, bool to, bool absolute) {
  const int64_t size = static_cast<int64_t>(x.size()), d = to ? size : size + 1;
  const Tensor matrix = basis_matrix(basis, d, DType::f64, kCpu);
  const double* q = matrix.data<double>();
  Row y(static_cast<size_t>(to ? d - 1 : d));
  for (int64_t r = 0; r < d; ++r)
    for (int64_t c = 0; c < d - 1; ++c) {
      const double entry = absolute ? std::abs(q[r * (d - 1) + c]) : q[r * (d - 1) + c];
      y[to ? c : r] += entry * x[to ? r : c];
    }
  x = std::move(y);
}

}  // namespace

struct Map::Rule {
  const char* name;  // null: the basis names the map
  Tensor (*apply)(const Tensor&, int);
  void (*apply_row)(Row&, double sign);
  int change;                      // change of the size: -1, 0 or 1
  Step adjoint, inverse;           // inverse: one-sided
  std::optional<Columns> columns;  // nothing: they are not alike
  bool rounds_once = false;        // computes bf16 in f32 by itself
};

const Map::Rule& Map::rule(Factor factor) {
  using enum Step;
  using enum Columns;
  static const Rule rules[] = {
      {"recentre", streams::recentre, recentre_row, 0, recentre, recentre, near_identity, true},
      {"compress", streams::compress_writer, compress_row, -1, expand_reader, expand, near_identity},
      {"expand", streams::expand_writer, expand_row, 1, compress_reader, compress, pairs},
      {"compress_reader", streams::compress_reader, compress_reader_row, -1, expand, expand_reader, {}},
      {"expand_reader", streams::expand_reader, expand_reader_row, 1, compress, compress_reader, near_identity},
      {nullptr, nullptr, nullptr, -1, from_basis, from_basis, {}},
      {nullptr, nullptr, nullptr, 1, to_basis, to_basis, Columns::basis}};
  return rules[static_cast<size_t>(factor.step)];
}

std::string Map::name_of(Factor factor) {
  if (!factor.basis) return rule(factor).name;
  return text(factor.basis->name, factor.step == Step::to_basis ? "" : "'s adjoint");
}

Map::Map(int64_t width, std::vector<Factor> factors)
    : width_(width), inputs_(width), outputs_(width), factors_(std::move(factors)) {
  check(width >= (factors_.empty() ? 1 : 2), "map: width ", width, " is too small, expected at least ",
        factors_.empty() ? 1 : 2);
  if (factors_.empty()) return;
  inputs_ -= rule(factors_.front()).change == 1;
  outputs_ -= rule(factors_.back()).change == -1;
}

Map Map::identity(int64_t size) { return {size, {}}; }
Map Map::recentre(int64_t d) { return {d, {{Step::recentre}}}; }
Map Map::compress(int64_t d) { return {d, {{Step::compress}}}; }
Map Map::expand(int64_t d) { return {d, {{Step::expand}}}; }
Map Map::compress_reader(int64_t d) { return {d, {{Step::compress_reader}}}; }
Map Map::expand_reader(int64_t d) { return {d, {{Step::expand_reader}}}; }
Map Map::isometric(int64_t d, const Basis& basis) { return {d, {{Step::to_basis, &basis}}}; }

Tensor Map::operator()(const Tensor& x, int dim) const {
  check(is_floating(x.dtype()), "map: dtype is ", x.dtype(), ", expected f32, f64 or bf16");
  const bool once = factors_.empty() || (factors_.size() == 1 && rule(factors_[0]).rounds_once);
  if (x.dtype() == DType::bf16 && !once) return in_its_dtype(x.to(DType::f32), dim).to(DType::bf16);
  return in_its_dtype(x, dim);
}

Tensor Map::in_its_dtype(const Tensor& x, int dim) const {
  if (x.size(dim) != inputs_)
    check(false, "map: ", name(), " takes ", inputs_, " entries, ", x.shape(), " has ", x.size(dim),
          " along dimension ", dim);
  Tensor y = x;
  for (const Factor& f : factors_)
    y = f.step == Step::to_basis     ? to_basis(y, dim, *f.basis)
        : f.step == Step::from_basis ? from_basis(y, dim, *f.basis)
                                     : rule(f).apply(y, dim);
  return y;
}

void Map::apply(std::vector<double>& x, bool absolute) const {
  if (static_cast<int64_t>(x.size()) != inputs_)
    check(false, "map: ", name(), " takes ", inputs_, " entries, the vector has ", x.size());
  for (const Factor& f : factors_)
    if (!f.basis)
      rule(f).apply_row(x, absolute ? 1 : -1);
    else if (f.step == Step::from_basis && f.basis->expand_row)
      f.basis->expand_row(x, absolute);
    else
      times_basis(x, *f.basis, f.step == Step::to_basis, absolute);
}

Map::Columns Map::columns() const {
  if (factors_.empty()) return Columns::near_identity;
  const auto& columns = rule(factors_[0]).columns;
  if (factors_.size() > 1 || !columns) check(false, "map: ", name(), " has columns that are not alike");
  return *columns;
}

Map Map::reversed(Step Rule::*partner) const {
  std::vector<Factor> factors;
  for (auto f = factors_.rbegin(); f != factors_.rend(); ++f) factors.push_back({rule(*f).*partner, f->basis});
  return {width_, std::move(factors)};
}

Map Map::adjoint() const { return reversed(&Rule::adjoint); }

Map Map::left_inverse() const {
  check(factors_.empty() || inputs_ < width_, "map: ", name(), " takes ", inputs_, " entries to rank ", width_ - 1,
        ": it has no left inverse");
  return reversed(&Rule::inverse);
}

Map Map::right_inverse() const {
  check(factors_.empty() || outputs_ < width_, "map: ", name(), " reaches rank ", width_ - 1, " of ", outputs_,
        " entries: it has no right inverse");
  return reversed(&Rule::inverse);
}

std::string Map::name() const {
  std::string name;
  for (auto f = factors_.rbegin(); f != factors_.rend(); ++f) name += (name.empty() ? "" : " after ") + name_of(*f);
  return name.empty() ? "identity" : name;
}

Map operator*(const Map& a, const Map& b) {
  check(b.outputs_ == a.inputs_, "map: ", a.name(), " takes ", a.inputs_, " entries, ", b.name(), " gives ",
        b.outputs_);
  if (a.factors_.empty()) return b;
  if (b.factors_.empty()) return a;
  check(a.width_ == b.width_, "map: ", a.name(), " belongs to a stream of width ", a.width_, ", ", b.name(),
        " to a stream of width ", b.width_);
  std::vector<Map::Factor> factors = b.factors_;
  factors.insert(factors.end(), a.factors_.begin(), a.factors_.end());
  return {a.width_, std::move(factors)};
}

}  // namespace isonorm::streams
