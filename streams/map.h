// Linear maps between the coordinates of a residual stream, as small values: they compose, and each knows its adjoint
// and its inverses. A map acts along one dimension of a tensor, as often as the others say:
//
//   const Map to = Map::compress(8), back = to.right_inverse();  // D+, D
//   const Map centre = back * to;                                 // D D+ = P
//   Tensor b = to(w, 0);                                          // [8, in] -> [7, in], differentiable
//   Tensor dw = to.adjoint()(db, 0);                              // the gradient of w from that of b
//
// The symbols P, D, D+, Q are those of streams/coordinates.h.
#pragma once

#include <string>
#include <vector>

#include "core/tensor.h"
#include "nn/module.h"
#include "streams/stream.h"

namespace isonorm::streams {

class Map {
 public:
  // Of a stream of width d; throws where d < 2 (identity: where size < 1).
  static Map identity(int64_t size);
  static Map recentre(int64_t d);         // P:    d -> d
  static Map compress(int64_t d);         // D+:   d -> d - 1, what a writer becomes in crms_norm
  static Map expand(int64_t d);           // D:    d - 1 -> d
  static Map compress_reader(int64_t d);  // D^T:  d -> d - 1, what a reader becomes in crms_norm
  static Map expand_reader(int64_t d);    // D+^T: d - 1 -> d
  static Map isometric(int64_t d);        // Q^T:  d -> d - 1

  // M x along dimension `dim` of x, whose size there is inputs(); the result has outputs(). Differentiable. f32 and
  // f64; bf16 is computed in f32 and rounded once. Throws on another size or dtype.
  Tensor operator()(const Tensor& x, int dim) const;

  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }
  bool is_identity() const { return factors_.empty(); }

  // M*: <M x, y> = <x, M* y>.
  Map adjoint() const;
  // L with L M = I: exists where M loses nothing, that is for the identity and for maps from d - 1. Throws elsewhere.
  Map left_inverse() const;
  // R with M R = I: for the identity and for maps to d - 1. Throws elsewhere.
  Map right_inverse() const;

  // "expand after compress".
  std::string name() const;

  // a * b: first b, then a. Throws where b's outputs are not a's inputs, or the two belong to streams of different
  // width.
  friend Map operator*(const Map& a, const Map& b);

 private:
  // Every factor has 1 as its kernel or none, and the rows orthogonal to 1 as its range or everything: so a product of
  // any of them has rank d - 1, and the partners of its factors in reverse order invert it on the side where it can be.
  enum class Factor { recentre, compress, expand, compress_reader, expand_reader, to_isometric, from_isometric };
  struct Rule;
  static const Rule& rule(Factor factor);
  Map(int64_t width, std::vector<Factor> factors);
  Map reversed(Factor Rule::*partner) const;

  int64_t width_;  // d; of the identity: its size
  int64_t inputs_, outputs_;
  std::vector<Factor> factors_;  // in the order in which they act
};

// How a raw parameter becomes the one that a stream of that form and width d uses, along the parameter's stream_dim
// (the table of streams/stream.h). Throws on a neutral parameter, which has no such dimension.
Map parameter_map(streams::Role role, streams::Form form, int64_t d);

}  // namespace isonorm::streams
