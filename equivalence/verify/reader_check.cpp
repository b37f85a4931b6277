#include "equivalence/verify/reader_check.h"

#include "equivalence/coordinates/pairs.h"

namespace isonorm::equivalence {
namespace {

constexpr uint64_t kSeed = 2305;  // of the rows
constexpr int kPieceBits = 32;    // of a generator's offset: a piece has its own blocks

}  // namespace

ReaderCheck::ReaderCheck(const std::vector<std::string>& writers)
    : pair_(writers, kSeed),
      moved_a_(kControls, StreamComparison(writers, kSeed)),
      moved_b_(kControls, StreamComparison(writers, kSeed)) {}

// Calls f(i, a moved, b moved) for every control.
template <class F> void ReaderCheck::moved(const TensorMap& a, const TensorMap& b, uint64_t piece, F&& f) {
  for (const TensorMap* state : {&a, &b})
    if (const DType d = coarsest(*state); epsilon(d) > epsilon(dtype_)) dtype_ = d;
  for (size_t i = 0; i < kControls; ++i) {
    Generator of_a{i + 1, piece << kPieceBits}, of_b = of_a;
    f(i, moved_by_rounding(a, b, of_a, half_), moved_by_rounding(b, a, of_b, half_));
  }
}

void ReaderCheck::write(const TensorMap& a, const streams::Placement& layout_a, const TensorMap& b,
                        const streams::Placement& layout_b, uint64_t piece, Slices where) {
  pair_.write(a, layout_a, b, layout_b, where);
  moved(a, b, piece, [&](size_t i, const TensorMap& other_a, const TensorMap& other_b) {
    moved_a_[i].write(a, layout_a, other_a, layout_a, where);
    moved_b_[i].write(b, layout_b, other_b, layout_b, where);
  });
}

void ReaderCheck::read(const TensorMap& a, const streams::Placement& layout_a, const TensorMap& b,
                       const streams::Placement& layout_b, uint64_t piece) {
  pair_.read(a, layout_a, b, layout_b);
  moved(a, b, piece, [&](size_t i, const TensorMap& other_a, const TensorMap& other_b) {
    moved_a_[i].read(a, layout_a, other_a, layout_a);
    moved_b_[i].read(b, layout_b, other_b, layout_b);
  });
}

Agreement ReaderCheck::result(std::map<std::string, double>* of) const {
  const StreamDeviation deviation = pair_.result();
  if (of) *of = deviation.of;
  Agreement agreement{.deviation = deviation.worst, .dtype = dtype_};
  for (const auto* all : {&moved_a_, &moved_b_})
    for (const StreamComparison& c : *all) agreement.control = larger(agreement.control, c.result().worst);
  return agreement;
}

Agreement compare_streams(const TensorMap& a, const streams::Placement& layout_a, const TensorMap& b,
                          const streams::Placement& layout_b, std::map<std::string, double>* of) {
  ReaderCheck check(writers_of(a, layout_a, b, layout_b));
  check.write(a, layout_a, b, layout_b);
  check.read(a, layout_a, b, layout_b);
  return check.result(of);
}

}  // namespace isonorm::equivalence
