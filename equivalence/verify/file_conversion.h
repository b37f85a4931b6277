// Conversion of a checkpoint that need not fit into memory. It is converted and checked piece by piece (pieces.h). When
// it is written, its tensors are made again, one by one. In memory are a few pieces and two of its tensors at a time.
#pragma once

#include "equivalence/convert/convert.h"
#include "equivalence/convert/pieces.h"
#include "equivalence/verify/verify.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

// The findings about the result, in f64 before rounding or as stored.
struct ConversionFindings : StateComparison {
  bool equivalent() const {
    return entries.relation == EntryComparison::Relation::second_rounded && readers.explained();
  }
};

class FileConversion {
 public:
  // Like convert(), in pieces of this number of elements, with a plan that check_plan() passed. The constructor throws as
  // check_forms(), check() for values.
  FileConversion(LazyState file, streams::Plan plan, streams::Form to, std::optional<NumberFormat> format = {},
                 int64_t elements = kPieceElements);

  // Converts every piece and compares it with its source by the rules of compare_states(). False if go_on() returned
  // false between two pieces; then nothing is known.
  bool check(const std::function<bool()>& go_on);
  // Puts the result into the order of `outline`. Biases of `outline` that were not made become zeros in `format`.
  // Throws if another tensor was not made. Call this and all functions below after check().
  void complete(const TensorMap& outline, NumberFormat format);

  const streams::Plan& plan() const { return plan_; }  // of the source
  const ConversionFindings& exact() const { return exact_; }
  const std::optional<ConversionFindings>& stored() const { return stored_; }  // nothing if no tensor is rounded
  const std::vector<TensorChange>& changes() const { return changes_; }

  // The source in f64, with writers of rms_norm centred again (state.h); the result in f64; and the result.
  LazyState before() const;
  LazyState result_in_f64() const;
  LazyState result() const;

 private:
  enum class How { converted, kept, created };  // kept: at its norm; created: by complete()
  struct Made {                                 // a tensor of the result
    Dims shape;
    NumberFormat format = DType::f32;
    size_t unit = 0;
    int axis = -1;  // axis of the cuts
    How how = How::converted;
  };

  template <class F> bool each_piece_of(size_t unit, F&& visit) const;
  void note(size_t unit, const Conversion& piece);  // the tensors that a unit becomes, by its first piece
  Tensor make(const std::string& name, bool rounded) const;
  LazyState made(bool rounded) const;

  LazyState stored_file_, file_;  // file_ is with_gains(stored_file_)
  streams::Plan plan_;
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
