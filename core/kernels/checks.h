// Slots that look at what tensors hold before an op uses it. What is wrong is a Complaint, whose text is the op's
// message. The CPU throws it at once. A kernel of a device writes it down, and who waits for the device next throws it:
// until then the slots that use such numbers skip what is wrong.
#pragma once

#include <optional>
#include <string>

#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

// Positions in something of size `bound`.
struct IdCheck {
  const char* op;    // literals: a device keeps their addresses
  const char* what;  // that has the size
  int64_t bound;
  std::optional<int64_t> allowed;  // an id that is right although it is outside
  Dims shape;                      // of the ids in the caller's hands
};

// Weights that are drawn from: of all rows the least weight, the largest sum and the least number of positive ones.
struct WeightCheck {
  Tensor least, total, positive;  // f64, one element each
  double needed;                  // so many positive ones

  static auto tensors(auto& s) { return std::tie(s.least, s.total, s.positive); }
};

// One thing that is wrong. A plain struct, so that a kernel fills one in.
struct Complaint {
  enum class Kind { id, weights, positive } kind;
  const char *op, *what, *path;   // path: of the module that asked (Scope), may be empty
  int64_t id, element, bound;     // of Kind::id
  int rank;                       // and the shape of the ids
  int64_t size[kMaxRank];         //
  double least, total, positive;  // of the others
  double needed;
};

// What is known of a complaint before an id is found to be wrong: all but the id and its element.
Complaint about(const IdCheck& check);
// "embedding: id 7 at element 2 of shape [3] is outside of the table of size 5", without the path.
std::string text_of(const Complaint& c);

namespace cpu {
void check_ids(const Tensor& ids, const IdCheck& check);
void check_weights(const WeightCheck& check);
}  // namespace cpu

// Every id is in [0, bound) or `allowed`; ids of i64, contiguous. Of several wrong ones the first is told.
inline constinit Kernel<void(const Tensor&, const IdCheck&)> check_ids{"check_ids", &cpu::check_ids};
// least >= 0, total finite, positive >= needed.
inline constinit Kernel<void(const WeightCheck&)> check_weights{"check_weights", &cpu::check_weights};

}  // namespace isonorm::kernels
