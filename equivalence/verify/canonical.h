// The canonical form of a checkpoint: the coordinates of the Pre-LN model, without the directions that its function
// cannot see. Two checkpoints can be compared entry by entry in it. With P, D, D+ and Q of streams/coordinates.h; each
// slice along the stream is a row:
//
//   writer         P W, layer scale folded in   stored W: P W; compressed: D v or Q w
//   table before   P LayerNorm(W), row by row
//     a norm
//   reader         A diag(gain) P               stored A; compressed: D+^T b or Q b; for each of several rows
//   its bias       b + A beta                   if there is none: A beta
//   tied table     a writer, and the reader of its head: from D v if the table is compressed
//   anything else  unchanged
//
// If the plan has a rotation Q, stored rows are first multiplied by Q. Rows of uncentred_rms_norm are not centred. If
// the model is not convertible, its function may see means and row sums, and no tensor is changed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "equivalence/convert/pieces.h"
#include "streams/map.h"

namespace isonorm::equivalence {

// A row in f64, and for each entry how far it may be off. With M the map from the stored values s: rounding = |M|
// half_ulp(s) if each s was rounded once; size = |M| |s|: the error of computing M in f64 is relative to it. The
// bound is a plain sum and not a root of squares, because it is reached if all entries of a slice are rounded alike
// (-1/d, .., 1 - 1/d). flip: a whole ulp of the largest stored value of the slice, which bounds the change of any entry
// if that value is rounded the other way (no entry of a map M is above 1).
struct Carried {
  std::vector<double> value, rounding, size;
  double flip = 0;

  void resize(size_t n);
};

class Canonical {
 public:
  enum class Kind { writer, reader, bias, stored, exact };  // stored: as stored, rounded; exact: to the last bit
  struct Part {
    Kind kind;
    std::string name;
    bool operator==(const Part&) const = default;
  };

  // The rows of a part, computed one at a time. Memory holds only the stored values in f64, and their rotation.
  class Rows {
   public:
    Dims shape() const;                        // [rows, columns]
    void read(int64_t row, Carried& x) const;  // several threads may call it, each with its own x

   private:
    friend class Canonical;
    // Stored rows. partner: the same rows in the other file if that file has the same form, else undefined.
    struct Stored {
      Tensor values, partner;
      NumberFormat format = DType::f64;
      void read(int64_t row, Carried& x) const;
    };
    int64_t count_ = 0;
    Stored weight_;
    std::optional<double> eps_;  // of a norm that the rows go through first
    Carried factors_;            // gain or layer scale that is folded in; empty if there is none
    Tensor rotated_;             // the rows with factors, times the plan's rotation; undefined if it has none
    double rotation_error_ = 0;
    std::optional<streams::Map> map_;  // from the stored rows to the Pre-LN model's; nothing: rows as they are stored
    bool rounded_with_sum_ = false;    // by FormRow::rounds_with_sum
    bool of_bias_ = false;             // the rows are single entries of a bias
    Stored bias_;
    // A norm's bias. It is added to rows that went through the norm. In a bias it multiplies the reader's rows,
    // and their sum is multiplied by `factor_`.
    Carried beta_;
    double factor_ = 1;
    int64_t parts_ = 1;  // rows of the weight per entry of a bias
  };

  // centred: removes means and row sums, and folds everything; otherwise all is as stored. partner: a state in the same
  // form, or null: a value that is equal there was not rounded on the way. The arguments must outlive this object.
  Canonical(const Piece& piece, bool centred, const TensorMap* partner = nullptr);
  Canonical(const Piece&&, bool, const TensorMap* = nullptr) = delete;

  const std::vector<Part>& parts() const { return parts_; }
  // The rows of a part of any kind except `exact`. A bias gives [out, 1], because its entries share no scale. Throws if
  // the shapes do not fit the plan.
  Rows rows(const Part& part) const;
  // The names of the tensors that the part is made from; some may be missing.
  std::vector<std::string> sources(const Part& part) const;

 private:
  Rows of_writer(const streams::Plan::Writer& writer) const;
  Rows of_reader(const streams::Plan::Reader& reader) const;
  Rows of_bias(const streams::Plan::Reader& reader) const;
  const streams::Plan::Reader& reader_of(const Part& part) const;
  Rows stored(const std::string& name, int dim, int64_t parts = 1) const;
  Carried vector(const std::string& name) const;

  const Piece& piece_;
  const TensorMap& state_;
  const streams::Plan& plan_;
  const TensorMap* partner_;
  std::vector<Part> parts_;
};

}  // namespace isonorm::equivalence
