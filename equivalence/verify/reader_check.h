// Two checkpoints compared by what the readers of the stream see of random rows (stream_check.h), with what one unit in
// the last place does to either as the measure; the checkpoints may come in pieces.
#pragma once

#include <set>

#include "equivalence/verify/stream_check.h"
#include "equivalence/verify/verify.h"

namespace isonorm::equivalence {

class ReaderCheck {
 public:
  explicit ReaderCheck(const std::vector<std::string>& writers);
  // Tensors of either state whose f32 numbers are those of F16 alone: one ulp is an ulp of that.
  void in_half(const std::set<std::string>& names) { half_.insert(names.begin(), names.end()); }
  // As StreamComparison's; `piece`: a number of its own for each piece, the same in both calls.
  void write(const TensorMap& a, const streams::Placement& layout_a, const TensorMap& b,
             const streams::Placement& layout_b, uint64_t piece = 0, Slices where = {});
  void read(const TensorMap& a, const streams::Placement& layout_a, const TensorMap& b,
            const streams::Placement& layout_b, uint64_t piece = 0);
  // Where `of` is not null it gets each tensor's deviation.
  Agreement result(std::map<std::string, double>* of = nullptr) const;

 private:
  template <class F> void moved(const TensorMap& a, const TensorMap& b, uint64_t piece, F&& f);

  StreamComparison pair_;
  std::vector<StreamComparison> moved_a_, moved_b_;  // each against itself, moved
  std::set<std::string> half_;
  DType dtype_ = DType::f64;
};

}  // namespace isonorm::equivalence
