// Conversion of a checkpoint that need not fit into memory: piece by piece (pieces.h), checked piece by piece, and made
// anew tensor by tensor when it is written. Beside a few pieces, two of its tensors are in memory at a time.
#pragma once

#include "equivalence/convert/convert.h"
#include "equivalence/convert/pieces.h"
#include "equivalence/verify/verify.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

// What was found about the result, in f64 before rounding or as it is stored.
struct ConversionFindings : StateComparison {
  bool same() const { return entries.relation == EntryComparison::Relation::second_rounded && readers.same(); }
};

class FileConversion {
 public:
  // As convert(), in pieces of so many elements. Throws what can be said by names and shapes alone; what needs the
  // elements, check() throws.
  FileConversion(LazyState file, streams::Placement layout, streams::Form to, std::optional<NumberFormat> format = {},
                 int64_t elements = kPieceElements);

  // Converts every piece and compares it with what it was made of, by the rules of compare_states(). False where
  // go_on() was, between two pieces; then nothing is known.
  bool check(const std::function<bool()>& go_on);
  // Puts the result into the order of `outline`, which may have biases that were not made: they are zeros in `format`.
  // Throws where it has anything else that was not made. After check(), as all below.
  void complete(const TensorMap& outline, NumberFormat format);

  const streams::Placement& layout() const { return layout_; }  // of the source
  const ConversionFindings& exact() const { return exact_; }
  const std::optional<ConversionFindings>& stored() const { return stored_; }  // nothing where no tensor is rounded
  const std::vector<TensorChange>& changes() const { return changes_; }

  // The source in f64, its writers as centred as those of rms_norm are (stream_check.h); the result in f64; and the
  // result.
  LazyState before() const;
  LazyState result_in_f64() const;
  LazyState result() const;

 private:
  enum class How { converted, kept, created };  // kept: at its norm; created: by complete()
  struct Made {                                 // a tensor of the result
    Dims shape;
    NumberFormat format = DType::f32;
    size_t unit = 0;
    int axis = -1;  // that it was cut along
    How how = How::converted;
  };

  template <class F> bool each_piece_of(size_t unit, F&& visit) const;
  void note(size_t unit, const Conversion& piece);
  Tensor make(const std::string& name, bool rounded) const;
  LazyState made(bool rounded) const;

  LazyState stored_file_, file_;  // with_gains() is between them
  streams::Placement layout_;
  streams::Form to_;
  std::optional<NumberFormat> format_;
  std::vector<Unit> units_;
  ConversionFindings exact_;
  std::optional<ConversionFindings> stored_;
  std::vector<TensorChange> changes_, dropped_;
  std::map<std::string, Made> made_;
  std::vector<std::string> order_;  // of the result
};

}  // namespace isonorm::equivalence
