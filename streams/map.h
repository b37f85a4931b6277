// Linear maps between the coordinates of a residual stream. Maps are small values: they compose, and each knows its
// adjoint and its one-sided inverses. A map acts on all vectors along one dimension of a tensor:
//
//   const Map to = Map::compress(8), back = to.right_inverse();  // D+, D
//   const Map centre = back * to;                                 // D D+ = P
//   Tensor b = to(w, 0);                                          // [8, in] -> [7, in], differentiable
//   Tensor dw = to.adjoint()(db, 0);                              // the gradient of w, given db, the gradient of b
//
// The symbols P, D, D+, Q are defined in streams/coordinates.h.
#pragma once

#include <string>
#include <vector>

#include "core/tensor.h"
#include "streams/coordinates.h"

namespace isonorm::streams {

class Map {
 public:
  // Maps for a stream of width d. Each throws if d < 2; identity() throws if size < 1.
  static Map identity(int64_t size);
  static Map recentre(int64_t d);                                  // P:    d -> d
  static Map compress(int64_t d);                                  // D+:   d -> d - 1, maps writers in crms_norm
  static Map expand(int64_t d);                                    // D:    d - 1 -> d
  static Map compress_reader(int64_t d);                           // D^T:  d -> d - 1, maps readers in crms_norm
  static Map expand_reader(int64_t d);                             // D+^T: d - 1 -> d
  static Map isometric(int64_t d, const Basis& basis = kHelmert);  // Q^T:  d -> d - 1

  // M x along dimension `dim` of x, whose size is inputs() and becomes outputs(). Differentiable. f32 and f64; bf16 is
  // computed in f32 and rounded once. Throws on another size or dtype.
  Tensor operator()(const Tensor& x, int dim) const;
  // The same, but each step of the map is computed in x's dtype, and rounds in bf16.
  Tensor in_its_dtype(const Tensor& x, int dim) const;

  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }
  bool is_identity() const { return factors_.empty(); }

  // M*: <M x, y> = <x, M* y>.
  Map adjoint() const;
  // L with L M = I. Exists if M loses nothing: for the identity and maps from d - 1. Throws for other maps.
  Map left_inverse() const;
  // R with M R = I. Exists for the identity and maps to d - 1. Throws for other maps.
  Map right_inverse() const;

  // One vector of inputs() numbers, in place: M x; and a bound of |M e| for all errors |e| <= x, which is |M| x or, for
  // the factors P, D+ and D+^T, at most 2/d of the sum of x more.
  void apply(std::vector<double>& x) const { apply(x, false); }
  void bound_errors(std::vector<double>& x) const { apply(x, true); }
  // The structure of the columns of the map. near_identity: an entry of at most 1, others of at most 1/d. pairs: two
  // entries of size 1. basis: the columns of Q. Throws for a product, and for D^T and Q^T, whose columns are not alike.
  enum class Columns { near_identity, pairs, basis };
  Columns columns() const;
  // The basis of Q^T and Q; null for other maps.
  const Basis* basis() const { return factors_.size() == 1 ? factors_[0].basis : nullptr; }

  // The name of the map, "compress" or "isometric"; of a product, text such as "expand after compress".
  std::string name() const;

  // a * b applies b first, then a. Throws if b's outputs are not a's inputs, or if the two maps belong to streams of
  // different width.
  friend Map operator*(const Map& a, const Map& b);

 private:
  // The kernel of each factor is {0} or the span of 1, and its range is everything or the rows orthogonal to 1. Every
  // product has rank d - 1, and the product of the factors' inverses in reverse order is its one-sided inverse.
  enum class Step { recentre, compress, expand, compress_reader, expand_reader, to_basis, from_basis };
  struct Factor {
    Step step;
    const Basis* basis = nullptr;
  };
  struct Rule;
  static const Rule& rule(Factor factor);
  static std::string name_of(Factor factor);
  Map(int64_t width, std::vector<Factor> factors);
  Map reversed(Step Rule::*partner) const;
  void apply(std::vector<double>& x, bool absolute) const;

  int64_t width_;  // d; for the identity its size
  int64_t inputs_, outputs_;
  std::vector<Factor> factors_;  // in the order of application
};

// The sum of the entries, in Map::apply()'s order of addition: four partial sums.
double total(const std::vector<double>& x);

}  // namespace isonorm::streams
