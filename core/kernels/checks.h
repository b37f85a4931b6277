// Slots that check the contents of tensors before an op uses them. A violation is a Complaint, whose text is the op's
// message. The CPU throws it at once. A device's kernel records it, and the next call that waits for the device throws
// it; until then, slots that use the wrong numbers skip them.
#pragma once

#include <optional>
#include <string>

#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

// Positions along a dimension of size `bound`.
struct IdCheck {
  const char* op;    // string literals: a device keeps their addresses
  const char* what;  // the thing that has this size
  int64_t bound;
  std::optional<int64_t> allowed;  // an id outside of the range that is accepted
  Dims shape;                      // the shape of the ids that the caller passed
};

// Statistics of the weights to draw from, over all rows: the least weight, the largest sum of a row, and the least
// number of positive weights in a row.
struct WeightCheck {
  Tensor least, total, positive;  // f64, one element each
  double needed;                  // positive weights needed in a row

  static auto tensors(auto& s) { return std::tie(s.least, s.total, s.positive); }
};

// One violation. A plain struct, so that a kernel can fill one in.
struct Complaint {
  enum class Kind { id, weights, positive } kind;
  const char *op, *what, *path;  // path of the module that asked (Scope); may be empty
  int64_t id, element, bound;    // Kind::id
  int rank;                      // Kind::id: shape of the ids
  int64_t size[kMaxRank];
  double least, total, positive;  // the other kinds
  double needed;
};

// The parts of a complaint that are known before an id is found to be wrong: all but the id and its element.
Complaint about(const IdCheck& check);
// "embedding: id 7 at element 2 of shape [3] is outside of the table of size 5", without the path.
std::string text_of(const Complaint& c);

namespace cpu {
void check_ids(const Tensor& ids, const IdCheck& check);
void check_weights(const WeightCheck& check);
}  // namespace cpu

// Every id must be in [0, bound) or `allowed`. ids: i64, contiguous. If several are wrong, the first is reported.
inline constinit Kernel<void(const Tensor&, const IdCheck&)> check_ids{"check_ids", &cpu::check_ids};
// Requires least >= 0, total finite, and positive >= needed.
inline constinit Kernel<void(const WeightCheck&)> check_weights{"check_weights", &cpu::check_weights};

}  // namespace isonorm::kernels
