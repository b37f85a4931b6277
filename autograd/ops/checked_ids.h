// What ops that take positions do first.
#pragma once

#include <optional>

#include "core/tensor.h"

namespace isonorm::detail {

// The positions, contiguous, after a check that each is in [0, bound) or equal to `allowed`. Throws "op: id 7 at
// element 2 of shape [3] is outside of what of size 5", and where ids are not i64.
Tensor checked_ids(const Tensor& ids, int64_t bound, const char* op, const char* what,
                   std::optional<int64_t> allowed = {});

}  // namespace isonorm::detail
