// Conversion of a checkpoint that need not fit into memory: piece by piece (pieces.h), checked piece by piece, and made
// anew tensor by tensor when it is written. Beside a few pieces, two of its tensors are in memory at a time.
#pragma once

#include <set>

#include "equivalence/convert/convert.h"
#include "equivalence/convert/pieces.h"
#include "equivalence/verify/verify.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

// What was found about the result, in f64 before rounding or as it is stored.
struct ConversionFindings {
  EntryComparison entries;                        // of second_rounded alone is it the same
  Agreement readers;                              // of random rows
  std::map<std::string, double> deviations = {};  // of each tensor, in what the readers see

  bool same() const { return entries.relation == EntryComparison::Relation::second_rounded && readers.same(); }
};

class FileConversion {
 public:
  static constexpr int64_t kElements = int64_t{1} << 19;  // of a piece

  // As convert(), in pieces of so many elements. half: tensors of the source whose results are numbers of F16 (io/half.h),
  // where their dtype is f32; so are what is made of them. Throws what can be said by names and shapes alone; what needs
  // the elements, check() throws.
  FileConversion(LazyState file, streams::Placement layout, streams::Form to, std::optional<DType> dtype = {},
                 int64_t elements = kElements, std::set<std::string> half = {});

  // Converts every piece and compares it with what it was made of, by the rules of verify_streams(). False where
  // go_on() was, between two pieces; then nothing is known.
  bool check(const std::function<bool()>& go_on);
  // Puts the result into the order of `outline`, which may have biases that were not made: they are zeros of `dtype`.
  // Throws where it has anything else that was not made. After check(), as all below.
  void complete(const TensorMap& outline, DType dtype);

  const streams::Placement& layout() const { return layout_; }  // of the source
  const ConversionFindings& exact() const { return exact_; }
  const std::optional<ConversionFindings>& stored() const { return stored_; }  // nothing where no tensor is rounded
  const std::vector<TensorChange>& changes() const { return changes_; }

  // The source in f64, its writers as centred as those of rms_norm are (stream_check.h); the result in f64; and the
  // result.
  LazyState before() const;
  LazyState result_in_f64() const;
  LazyState result() const;
  // Whether a tensor of the result has numbers of F16 alone, to which it was rounded once.
  bool is_half(const std::string& name) const { return made_.at(name).half; }

 private:
  enum class How { converted, kept, created };  // kept: at its norm; created: by complete()
  struct Made {                                 // a tensor of the result
    Dims shape;
    DType dtype = DType::f32;
    size_t unit = 0;
    int axis = -1;  // that it was cut along
    How how = How::converted;
    bool half = false;
  };

  template <class F> bool each_piece(size_t unit, F&& visit) const;
  Conversion converted(size_t unit, const Piece& piece, ZeroMeans& means) const;
  void note(size_t unit, const Conversion& piece);
  std::set<std::string> halves(const TensorMap& state, const std::string& first) const;
  Tensor make(const std::string& name, bool rounded) const;
  LazyState made(bool rounded) const;

  LazyState stored_file_, file_;  // with_gains() is between them
  streams::Placement layout_;
  streams::Form to_;
  std::optional<DType> dtype_;
  std::set<std::string> half_;  // of the source
  std::vector<Unit> units_;
  ConversionFindings exact_;
  std::optional<ConversionFindings> stored_;
  std::vector<TensorChange> changes_, dropped_;
  std::map<std::string, Made> made_;
  std::vector<std::string> order_;  // of the result
};

}  // namespace isonorm::equivalence
