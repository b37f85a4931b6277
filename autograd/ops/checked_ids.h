// What ops that take positions do first.
#pragma once

#include <optional>

#include "core/tensor.h"

namespace isonorm::detail {

// The positions, contiguous, after a check that each is in [0, bound) or equal to `allowed`. Throws "op: id 7 at
// element 2 of shape [3] is outside of what of size 5", and where ids are not i64; where they lie on a device the first
// is thrown by whoever waits for it next (core/kernels/checks.h). op and what are literals.
Tensor checked_ids(const Tensor& ids, int64_t bound, const char* op, const char* what,
                   std::optional<int64_t> allowed = {});

// embedding() without the check: contiguous ids of i64 that are right by construction, as those of arange() are.
Tensor rows_of(const Tensor& weight, const Tensor& ids);

}  // namespace isonorm::detail
