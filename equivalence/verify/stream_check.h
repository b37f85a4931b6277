// Are two checkpoints one function, seen from the residual stream alone: rows that the writers write, through the
// norms, as every reader reads them. Needs no model, touches every entry of every writer and reader, and uses the norms
// themselves, not the maps that a conversion is made with.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/random.h"
#include "core/tensor_map.h"
#include "streams/placement.h"

namespace isonorm::equivalence {

struct StreamDeviation {
  std::map<std::string, double> of;  // of each writer (in what any reader sees of it) and each reader
  double worst = 0;                  // NaN where anything is NaN
};

// Random combinations of the slices of each writer, and of all writers together, are put through the norm of each
// reader: y = A norm(x) + b in f64. A deviation is max |y_a - y_b| / max |y_a|, the latter over all rows of the reader.
// Rows that enter a stream which is recentred once are random rows with a mean, mapped to its form. A head tied in `a` is compared with the head of its own in `b`. The states must fit their layouts
// (check_convertible). Throws where the two do not have the same writers and readers.
StreamDeviation stream_deviation(const TensorMap& a, const streams::Placement& layout_a, const TensorMap& b,
                                 const streams::Placement& layout_b, uint64_t seed);

// Which slices of a writer a piece of it has: from `begin` on, of `of` in all (0: of as many as there are).
struct Slices {
  int64_t begin = 0, of = 0;
};

// The same of two states that come in pieces (pieces.h): first what all writers write, then what the readers see of it.
class StreamComparison {
 public:
  StreamComparison(std::vector<std::string> writers, uint64_t seed);
  // The writers among these tensors; of states in pieces one.
  void write(const TensorMap& a, const streams::Placement& layout_a, const TensorMap& b,
             const streams::Placement& layout_b, Slices where = {});
  // The readers among them. Throws where the two do not have as many.
  void read(const TensorMap& a, const streams::Placement& layout_a, const TensorMap& b,
            const streams::Placement& layout_b);
  StreamDeviation result() const;

 private:
  struct Seen {
    double scale = 0, whole = 0;
    std::vector<double> of_writer = {};  // largest difference in the rows of each
  };
  std::vector<std::string> writers_;
  uint64_t seed_;
  std::vector<Tensor> written_a_, written_b_;  // rows of each writer
  Tensor rows_a_, rows_b_;                     // of all
  std::map<std::string, Seen> seen_;           // by reader
};

// The writers of both, and where rows enter a stream that is recentred once. Throws where there is none, or one has a writer more that is not 0.
std::vector<std::string> writers_of(const TensorMap& a, const streams::Placement& layout_a, const TensorMap& b,
                                    const streams::Placement& layout_b);

// Every floating tensor in f64 with each element moved by one unit in the last place of `dtype`, up or down at random:
// w (1 +- eps). What rounding explains, at least.
TensorMap moved_by_rounding(const TensorMap& state, DType dtype, uint64_t seed);
// The same with the dtype that each tensor has, or its partner of that name where that is coarser: one coarse tensor is
// no reason to move the others as far.
TensorMap moved_by_rounding(const TensorMap& state, const TensorMap& partner, Generator& generator);

// The state in f64; tensors that are not floating as they are.
TensorMap widened(const TensorMap& state);

// The same with the writers of rms_norm centred: a file rounded them after that, and the means that this left are no
// part of the model. What a conversion is compared with in f64.
TensorMap centred(const TensorMap& state, const streams::Placement& layout);

}  // namespace isonorm::equivalence
