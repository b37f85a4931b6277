// A checkpoint in the one form in which two can be compared entry by entry: the coordinates of the Pre-LN model,
// without what its function cannot see. With P, D, D+ and Q of streams/coordinates.h, each slice along the stream a row:
//
//   writer         P W, layer scale folded in   stored W: P W; compressed: D v or Q w
//   table behind   P LayerNorm(W), row by row
//   which a norm is
//   reader         A diag(gain) P               stored A; compressed: D+^T b or Q b; of several rows side by side each
//   its bias       b + A beta                   where none is stored: A beta
//   tied table     a writer, and the reader that its head is: from D v where the table is compressed
//   anything else  as it is stored
//
// Where the layout has a rotation Q, stored rows are taken times Q first. Rows of uncentred_rms_norm are not centred.
// Where the model is not convertible its function may see means and row sums: then every tensor stays as it is stored.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "equivalence/convert/pieces.h"

namespace isonorm::equivalence {

// x with dimension `dim` last and the others flattened, in order: [the others, size of dim]. parts: rows side by side in each
// of these, which are rows one behind the other then.
Tensor by_rows(const Tensor& x, int dim, int64_t parts = 1);

// What a writer's rows [n, width] are on the stream: those of a table behind which a norm is go through it.
Tensor behind_norm(const TensorMap& state, const streams::Placement& layout, const streams::Place& writer,
                   const Tensor& rows);

// A row in f64, and entry by entry how far it may be off: with M the map from the stored values s,
// rounding = |M| half_ulp(s) where each of them was rounded once; size = |M| |s|, what the error of computing M in f64
// is relative to. The bound is attained where all entries of a slice are rounded alike (-1/d, .., 1 - 1/d), so it is
// the sum and not its root. flip: a whole ulp of the largest stored value of the slice, what rounding it the
// other way does to any entry (no entry of a map M is above 1).
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

  // The rows of a part, made one at a time: nothing of it is in memory but what is stored, in f64, and its rotation.
  class Rows {
   public:
    Dims shape() const;                        // [rows, columns]
    void read(int64_t row, Carried& x) const;  // of several threads, each with its own x

   private:
    friend class Canonical;
    // Rows as they are stored. partner: the same of a file in the same form, or undefined.
    struct Stored {
      Tensor values, partner;
      NumberFormat format = DType::f64;
      void read(int64_t row, Carried& x) const;
    };
    enum class Map { none, centre, expand_writer, expand_reader, isometric };

    int64_t count_ = 0;
    Stored weight_;
    std::optional<double> eps_;  // of a norm that the rows go through first
    Carried factors_;            // gain or layer scale that is folded in; nothing where there is none
    Tensor rotated_;             // what that gives, times the layout's rotation; undefined where it has none
    double rotation_error_ = 0;
    Map map_ = Map::none;
    bool of_bias_ = false;  // an entry of a bias instead, each a row of its own
    Stored bias_;
    Carried beta_;  // a norm's bias: of the rows that went through it; of an entry what it adds, times `factor_`
    double factor_ = 1;
    int64_t parts_ = 1;  // rows of the weight that an entry has
  };

  // centred: whether means and row sums are taken off, and everything folded; else as stored. partner: a state in the
  // same form, or null: a value that stands there too was not rounded on the way. All of them must outlive this.
  Canonical(const Piece& piece, bool centred, const TensorMap* partner = nullptr);
  Canonical(const Piece&&, bool, const TensorMap* = nullptr) = delete;

  const std::vector<Part>& parts() const { return parts_; }
  // Of a part of any kind but `exact`; of a bias [out, 1]: no entry of it is a measure of another's.
  // Throws where the shapes do not fit the layout.
  Rows rows(const Part& part) const;
  // The names of the tensors that it is made of; some may not be there.
  std::vector<std::string> sources(const Part& part) const;

 private:
  Rows::Map map(const Part& part) const;
  Rows of_bias(const std::string& name, Rows weight, const std::string& norm, int64_t parts) const;
  Rows stored(const std::string& name, int dim, int64_t parts = 1) const;
  Carried vector(const std::string& name) const;
  const streams::Place* find(const std::string& name) const;

  const Piece& piece_;
  const TensorMap& state_;
  const streams::Placement& layout_;
  const TensorMap* partner_;
  std::vector<Part> parts_;
};

}  // namespace isonorm::equivalence
