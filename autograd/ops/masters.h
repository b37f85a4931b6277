// Internal: f32 parameters that meet bf16 rows, the masters of mixed precision (Micikevicius et al., 1710.03740).
#pragma once

#include "core/dtype.h"

namespace isonorm::detail {

// Whether parameters of a dtype go with rows of a dtype: where both are one, and f32 ones with bf16 rows. The latter are
// rounded to bf16 where a product reads them; their gradient is summed and given in f32.
constexpr bool fits_rows(DType parameters, DType rows) {
  return parameters == rows || (parameters == DType::f32 && rows == DType::bf16);
}

}  // namespace isonorm::detail
