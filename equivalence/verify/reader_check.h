// Two checkpoints seen from the residual stream alone: rows that the writers write, through the norms, as every reader reads
// them. Needs no model, touches every entry of every writer and reader, and uses the norms themselves, not the maps that a
// conversion is made with. Beside it stands what one unit in the last place does to either, as the measure.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "equivalence/convert/pieces.h"
#include "equivalence/verify/stream_reader.h"
#include "equivalence/verify/verify.h"

namespace isonorm::equivalence {

// Random combinations of the slices of each writer, and of all writers together, are put through the norm of each reader:
// y = R (A norm(x) + b) in f64, with R random combinations of what it gives, as Freivalds (1977) checks a product. A
// deviation is max |y_a - y_b| / max |y_a|, the latter over all rows of the reader. Rows that enter a stream which is
// recentred once are random rows with a mean, mapped to its form. A head tied in `a` is compared with the head of its own in
// `b`. The controls are the same with every number w of one side moved to w (1 +- eps), eps of its format
// or its partner's of that name where that is coarser, the signs of a matrix being those of its row times those of its column.
class ReaderCheck {
 public:
  // The writers that both have, and where rows enter a stream that is recentred once. Throws where there is none, and where
  // the two are not recentred at one place.
  ReaderCheck(const streams::Placement& a, const streams::Placement& b);

  // The writers among the tensors of two pieces, then the readers, each through the sum of all that was written.
  // Throws where the two do not have the same readers.
  void write(const Piece& a, const Piece& b);
  void read(const Piece& a, const Piece& b);
  // Where `of` is not null it gets the deviation of each reader, and of each writer in what any reader sees of it.
  Agreement result(std::map<std::string, double>* of = nullptr) const;

 private:
  using Copies = std::array<Tensor, 1 + kControls>;  // as it is, then moved
  struct Side {
    std::vector<Copies> written;  // by writer
    Copies rows;                  // of all: [(writers + 1) kSamples, stored width]
    std::string norm;             // that `normalised` are behind: readers of one norm come one after another
    int64_t parts = 1;            // rows of them side by side
    Copies normalised;
    const Copies& seen_by(const Piece& piece, const StreamReader& reader, const Piece& partner);
  };
  struct Seen {  // by one reader
    std::array<double, 2> scale{};
    std::array<double, 2> moved{};       // largest difference of a side to its own, moved
    std::vector<double> of_writer = {};  // largest difference of the two in the rows of each, then of their sum
  };
  void note(const Piece& a, const Piece& b);

  std::vector<std::string> writers_;
  Side a_, b_;
  std::map<std::string, Seen> seen_;
  NumberFormat format_ = DType::f64;
};

}  // namespace isonorm::equivalence
