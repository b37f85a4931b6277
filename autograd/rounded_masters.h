// Mixed precision: f32 master parameters used with bf16 rows, rounded once for all ops that read them.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "core/tensor.h"

namespace isonorm {

// Weak references to parameters that were read with bf16 rows.
using Masters = std::vector<std::weak_ptr<TensorImpl>>;

// While it lives, ops of this thread that read an f32 leaf with bf16 rows share one rounded copy, as long as nobody
// writes to the leaf. The constructor rounds every tensor in `masters` at once (on a device, a hundred per launch). The
// destructor stores in `masters` the leaves that were read in this way, for the next RoundedMasters. No bit depends on
// it.
class RoundedMasters {
 public:
  [[nodiscard]] explicit RoundedMasters(Masters& masters);
  ~RoundedMasters();
  RoundedMasters(const RoundedMasters&) = delete;
  RoundedMasters& operator=(const RoundedMasters&) = delete;

  // The rounded copy of x, made at the first call; undefined if x is not a contiguous f32 leaf.
  Tensor take(const Tensor& x);

 private:
  struct Copy {
    Tensor master, rounded;
    uint32_t version = 0;  // of the master's storage
    bool read = false;
  };
  Masters& masters_;
  std::unordered_map<const TensorImpl*, Copy> copies_;
  RoundedMasters* before_;
};

namespace detail {

// A weight or bias in the dtype of the rows that it is used with; rounded if necessary. Undefined if `parameter` is.
Tensor as_rows(const Tensor& parameter, DType rows);

}  // namespace detail
}  // namespace isonorm
