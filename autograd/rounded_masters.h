// Masters of mixed precision, f32 parameters that meet bf16 rows, rounded once for all that read them.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "core/tensor.h"

namespace isonorm {

// Parameters that were read with bf16 rows. Keeps none of them alive.
using Masters = std::vector<std::weak_ptr<TensorImpl>>;

// While it lives, ops of this thread that read an f32 leaf with bf16 rows share one rounded copy of it, for as long as
// nobody writes to the leaf. Those of `masters` are rounded at once, which on a device is one launch for a hundred of
// them. At its end `masters` are the leaves that were read so, for the next one. No bit depends on it.
class RoundedMasters {
 public:
  [[nodiscard]] explicit RoundedMasters(Masters& masters);
  ~RoundedMasters();
  RoundedMasters(const RoundedMasters&) = delete;
  RoundedMasters& operator=(const RoundedMasters&) = delete;

  // The copy of a tensor, which it makes where there is none; undefined where x is no contiguous f32 leaf.
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

// A weight or bias as rows of that dtype read it: itself, or rounded. Undefined where it is.
Tensor as_rows(const Tensor& parameter, DType rows);

}  // namespace detail
}  // namespace isonorm
