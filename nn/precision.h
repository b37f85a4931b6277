// Mixed precision: in which dtype a Transformer of f32 parameters computes.
#pragma once

#include "core/dtype.h"

namespace isonorm::nn {

// full: that of the parameters.
enum class Precision { full, bf16 };
inline constexpr const char* kPrecisionNames[] = {"full", "bf16"};
constexpr const char* name_of(Precision p) { return kPrecisionNames[static_cast<size_t>(p)]; }

// Of a model whose parameters are f32; of another dtype it computes in that (Micikevicius et al., 1710.03740; in bf16
// Kalamkar et al., 1905.12322). What branches and head read, compute and save is of `products`, every sum in it f32.
// Parameters stay f32: they are mapped to the stream's coordinates as such, and rounded once where a product reads them;
// their gradients are f32 sums, which no rounding follows. So are statistics of norms, logits' widening and losses: there
// is no loss scaling, since bf16 has the exponents of f32. f16, which has not, is no choice.
struct MixedPrecision {
  Precision products = Precision::full;
  Precision stream = Precision::full;  // the residual stream between the blocks; bf16 only where `products` are

  bool operator==(const MixedPrecision&) const = default;
  // Of what a branch reads of rows of a dtype, and of the stream that such rows enter.
  DType branch_dtype(DType rows) const { return in(products, rows); }
  DType stream_dtype(DType rows) const { return in(stream, rows); }

 private:
  static DType in(Precision p, DType rows) { return p == Precision::bf16 && rows == DType::f32 ? DType::bf16 : rows; }
};

}  // namespace isonorm::nn
