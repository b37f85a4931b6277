// Compares two checkpoints through the residual stream alone: rows from the writers pass through the norms and are read
// by every reader. This needs no model, touches every entry of every writer and reader, and uses the norms themselves
// instead of the maps of a conversion. Controls, moved by one unit in the last place, are the measure.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "equivalence/convert/pieces.h"
#include "equivalence/convert/rows.h"
#include "equivalence/verify/verify.h"

namespace isonorm::equivalence {

// Random combinations of the slices of each writer, and of the sum of the writers, are put through the norm of each
// reader: y = R (A norm(x) + b) in f64, with random combinations R of the outputs, as Freivalds (1977) checks a
// product. A deviation is max |y_a - y_b| / max |y_a|, with the latter over all rows of the reader. If a stream is
// recentred once, the rows that enter it are random rows with a mean, mapped to its form. A head that is tied in `a` is
// compared with the separate head in `b`.
//
// A control replaces every number w on one side by w (1 +- eps). eps is of w's format, or of the partner's format if
// that is coarser. A sign in a matrix is the product of a sign of its row and a sign of its column.
class ReaderCheck {
 public:
  // The writers are those that both have, and the place where rows enter a stream that is recentred once. Throws if
  // there is none, or if the two are recentred at different places.
  ReaderCheck(const streams::Plan& a, const streams::Plan& b);

  // write() adds the writers among the tensors of two pieces; afterwards read() compares the readers, each through the
  // sum of the written rows. Throws if the two do not have the same readers.
  void write(const Piece& a, const Piece& b);
  void read(const Piece& a, const Piece& b);
  // If `of` is not null, it gets the deviation of each reader, and for each writer the largest deviation in its rows
  // that a reader sees.
  Deviation result(std::map<std::string, double>* of = nullptr) const;

 private:
  using Copies = std::array<Tensor, 1 + kControls>;  // the values themselves, then the moved ones
  struct Side {
    std::vector<Copies> written;  // by writer
    Copies rows;                  // of all writers: [(writers + 1) kSamples, stored width]
    int norm = -1;                // the norm of `normalised`; readers with the same norm follow one another
    int64_t parts = 1;            // rows side by side in `normalised`
    Copies normalised;
    const Copies& normalised_for(const Piece& piece, const streams::Plan::Reader& reader, const Piece& partner);
  };
  struct ReaderOutputs {
    std::array<double, 2> largest{};      // largest output of each side
    std::array<double, 2> moved{};        // largest difference between a side and its moved copies
    std::vector<double> difference = {};  // largest difference of the two sides by writer, then for the writers' sum
  };
  void note(const Piece& a, const Piece& b);

  std::vector<std::string> writers_;
  Side a_, b_;
  std::map<std::string, ReaderOutputs> outputs_;  // by reader
  NumberFormat format_ = DType::f64;
};

}  // namespace isonorm::equivalence
