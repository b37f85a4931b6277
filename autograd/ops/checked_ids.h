// Ops that take positions check them first.
#pragma once

#include <optional>

#include "core/tensor.h"

namespace isonorm::detail {

// The positions, contiguous, after a check that each is in [0, bound) or equal to `allowed`. Throws "op: id 7 at
// element 2 of shape [3] is outside of what of size 5", and if ids are not i64. If ids are on a device, the next one to
// wait for the device throws the first error (core/kernels/checks.h). op and what are literals.
Tensor checked_ids(const Tensor& ids, int64_t bound, const char* op, const char* what,
                   std::optional<int64_t> allowed = {});

// embedding() without the check, for contiguous i64 ids that are valid by construction, such as arange().
Tensor rows_of(const Tensor& weight, const Tensor& ids);

}  // namespace isonorm::detail
