// A checkpoint in the one form in which two can be compared entry by entry: the coordinates of the Pre-LN model,
// without what its function cannot see. With P, D, D+ and Q of streams/coordinates.h, each slice along the stream a row:
//
//   writer         P W, layer scale folded in   stored W: P W; compressed: D v or Q w
//   reader         A diag(gain) P               stored A; compressed: D+^T b or Q b
//   its bias       b + A beta                   where none is stored: A beta
//   tied table     a writer, and the reader that its head is: from D v where the table is compressed
//   anything else  as it is stored
//
// Where the layout has a rotation Q, stored rows are taken times Q first. Rows of uncentred_rms_norm are not centred.
// Where the model is not convertible its function may see means and row sums: then every tensor stays as it is stored.
#pragma once

#include <string>
#include <vector>

#include "core/tensor_map.h"
#include "streams/placement.h"

namespace isonorm::equivalence {

// x with dimension `dim` last and the others flattened, in order: [the others, size of dim].
Tensor by_rows(const Tensor& x, int dim);

// The distance between subnormal numbers of a dtype: no rounding is finer.
double smallest_step(DType dtype);

// Half the distance from each entry to the next one that its dtype can hold, in f64: no rounding to nearest moved it by
// more. Of bf16, to which f64 is rounded by way of f32, 2^-15 of it more.
Tensor half_ulp(const Tensor& x);

// Values [rows, columns] in f64, and entry by entry how far they may be off: with M the map from the stored values s,
// rounding = |M| half_ulp(s) where each of them was rounded once; size = |M| |s|, what the error of computing M in f64
// is relative to. The bound is attained where all entries of a slice are rounded alike (-1/d, .., 1 - 1/d), so it is
// the sum and not its root. flip [rows, 1]: a whole ulp of the largest stored value of the slice, what rounding it the
// other way does to any entry (no entry of a map M is above 1).
struct Carried {
  Tensor value, rounding, size, flip;
};

class Canonical {
 public:
  enum class Kind { writer, reader, bias, stored, exact };  // stored: as stored, rounded; exact: to the last bit
  struct Part {
    Kind kind;
    std::string name;
    bool operator==(const Part&) const = default;
  };

  // centred: whether means and row sums are taken off, and everything folded; else as stored. partner: a state in the
  // same form, or null: a value that stands there too was not rounded on the way. All of them must outlive this.
  Canonical(const TensorMap& state, const streams::Placement& layout, bool centred, const TensorMap* partner = nullptr);

  const std::vector<Part>& parts() const { return parts_; }
  // Of a part of any kind but `exact`; of a bias [out, 1]: no entry of it is a measure of another's.
  // Throws where the shapes do not fit the layout.
  Carried at(const Part& part) const;
  // The names of the tensors that it is made of; some may not be there.
  std::vector<std::string> sources(const Part& part) const;

 private:
  Carried writer(const streams::Place& p) const;
  Carried seen(const Carried& x) const;
  Carried reader(Carried weight, const std::string& norm, bool table) const;
  Carried bias(const std::string& name, const Carried& weight, const std::string& norm) const;
  Carried stored(const std::string& name, int dim) const;
  Carried entrywise(const std::string& name) const;
  const streams::Place* find(const std::string& name) const;

  const TensorMap& state_;
  const streams::Placement& layout_;
  const TensorMap* partner_;
  std::vector<Part> parts_;
};

}  // namespace isonorm::equivalence
