// Internal: f32 parameters (masters) used with bf16 rows: mixed precision (Micikevicius et al., 1710.03740).
#pragma once

#include "core/dtype.h"

namespace isonorm::detail {

// True if parameters of one dtype can be used with rows of the other: equal dtypes, or f32 parameters with bf16 rows.
// The latter are rounded to bf16 when a product reads them; their gradient is summed and given in f32.
constexpr bool fits_rows(DType parameters, DType rows) {
  return parameters == rows || (parameters == DType::f32 && rows == DType::bf16);
}

}  // namespace isonorm::detail
