#include "streams/map.h"

#include "autograd/ops/pointwise.h"

namespace isonorm::streams {

struct Map::Rule {
  const char* name;
  Tensor (*apply)(const Tensor&, int);
  int change;               // change of the size: -1, 0 or 1
  Factor adjoint, inverse;  // inverse: one-sided
};

const Map::Rule& Map::rule(Factor factor) {
  using enum Factor;
  static const Rule rules[] = {{"recentre", streams::recentre, 0, recentre, recentre},
                               {"compress", streams::compress_writer, -1, expand_reader, expand},
                               {"expand", streams::expand_writer, 1, compress_reader, compress},
                               {"compress_reader", streams::compress_reader, -1, expand, expand_reader},
                               {"expand_reader", streams::expand_reader, 1, compress, compress_reader},
                               {"isometric", streams::to_isometric, -1, from_isometric, from_isometric},
                               {"isometric's adjoint", streams::from_isometric, 1, to_isometric, to_isometric}};
  return rules[static_cast<size_t>(factor)];
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
Map Map::recentre(int64_t d) { return {d, {Factor::recentre}}; }
Map Map::compress(int64_t d) { return {d, {Factor::compress}}; }
Map Map::expand(int64_t d) { return {d, {Factor::expand}}; }
Map Map::compress_reader(int64_t d) { return {d, {Factor::compress_reader}}; }
Map Map::expand_reader(int64_t d) { return {d, {Factor::expand_reader}}; }
Map Map::isometric(int64_t d) { return {d, {Factor::to_isometric}}; }

Tensor Map::operator()(const Tensor& x, int dim) const {
  check(is_floating(x.dtype()), "map: dtype is ", x.dtype(), ", expected f32, f64 or bf16");
  check(x.size(dim) == inputs_, "map: ", name(), " takes ", inputs_, " entries, ", x.shape(), " has ", x.size(dim),
        " along dimension ", dim);
  if (x.dtype() == DType::bf16) return (*this)(x.to(DType::f32), dim).to(DType::bf16);
  Tensor y = x;
  for (Factor f : factors_) y = rule(f).apply(y, dim);
  return y;
}

Map Map::reversed(Factor Rule::*partner) const {
  std::vector<Factor> factors;
  for (auto f = factors_.rbegin(); f != factors_.rend(); ++f) factors.push_back(rule(*f).*partner);
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
  for (auto f = factors_.rbegin(); f != factors_.rend(); ++f)
    name += (name.empty() ? "" : " after ") + std::string(rule(*f).name);
  return name.empty() ? "identity" : name;
}

Map operator*(const Map& a, const Map& b) {
  check(b.outputs_ == a.inputs_, "map: ", a.name(), " takes ", a.inputs_, " entries, ", b.name(), " gives ",
        b.outputs_);
  if (a.factors_.empty()) return b;
  if (b.factors_.empty()) return a;
  check(a.width_ == b.width_, "map: ", a.name(), " belongs to a stream of width ", a.width_, ", ", b.name(),
        " to one of width ", b.width_);
  std::vector<Map::Factor> factors = b.factors_;
  factors.insert(factors.end(), a.factors_.begin(), a.factors_.end());
  return {a.width_, std::move(factors)};
}

Map parameter_map(streams::Role role, streams::Form form, int64_t d) {
  check(role != streams::Role::neutral, "map: a neutral parameter does not touch the stream");
  const bool writer = role == streams::Role::writer;
  switch (form) {
    case streams::Form::rms_norm:
      return writer ? Map::recentre(d) : Map::identity(d);
    case streams::Form::crms_norm:
      return writer ? Map::compress(d) : Map::compress_reader(d);
    case streams::Form::crms_isometric:
      return Map::isometric(d);
    default:
      return Map::identity(d);
  }
}

}  // namespace isonorm::streams
