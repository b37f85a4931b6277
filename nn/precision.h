// Mixed precision: the dtypes of computation in a Transformer with f32 parameters.
#pragma once

#include "core/dtype.h"

namespace isonorm::nn {

// full: the precision of the parameters.
enum class Precision { full, bf16 };
inline constexpr const char* kPrecisionNames[] = {"full", "bf16"};
constexpr const char* name_of(Precision p) { return kPrecisionNames[static_cast<size_t>(p)]; }

// A model has f32 parameters (Micikevicius et al., 1710.03740; bf16: Kalamkar et al., 1905.12322); a model of
// another dtype computes in that dtype. Branches and the head read, compute and save tensors in the precision of
// `products`, with sums in f32. Parameters stay f32: their parametrisations compute in f32, and they are rounded once
// when a product reads them. Their gradients are f32 sums that are not rounded. Norm statistics and losses are
// f32, and logits are converted to f32. There is no loss scaling, because bf16 has the exponent range of f32; f16 does
// not, and is not offered.
struct MixedPrecision {
  Precision products = Precision::full;
  Precision residual = Precision::full;  // the residual stream between the blocks; bf16 requires products in bf16

  bool operator==(const MixedPrecision&) const = default;
  // Return the dtype of a branch's input, and of the residual stream, for rows of this dtype.
  DType branch_dtype(DType rows) const { return in(products, rows); }
  DType residual_dtype(DType rows) const { return in(residual, rows); }

 private:
  static DType in(Precision p, DType rows) { return p == Precision::bf16 && rows == DType::f32 ? DType::bf16 : rows; }
};

}  // namespace isonorm::nn
