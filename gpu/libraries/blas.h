// Products of matrices on a device behind one interface: by cuBLASLt if it is present and takes the views, else by the
// kernels of this library (kernels/product.cu), which take any views.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/tensor.h"
#include "gpu/stream.h"

namespace isonorm::gpu {

// An operation on a product before it is stored. Only cuBLASLt has them: see fused_product().
enum class Epilogue : uint8_t {
  none,
  gelu_tanh,        // out = gelu_tanh(h) with h = a b + bias; h is stored in aux if there is one
  gelu_tanh_slope,  // out = a b times the derivative of gelu_tanh at aux
  row_sums          // aux [m] = the row sums of a
};

struct MatrixStrides {
  int64_t row, column;  // one of them is 1, the other at least the size of the contiguous dimension
  bool operator==(const MatrixStrides&) const = default;
};

// A batch of products: strides of a and b along its dimensions, the innermost last. Results lie one after the other.
struct Batch {
  int rank = 0;
  int64_t count = 1;
  int64_t size[kMaxRank] = {}, a[kMaxRank] = {}, b[kMaxRank] = {};
};

// out [m, n] = a [m, k] b [k, n] + bias [n], or added to out's values; k may be 0. Sums are f64 for f64, f32 for f32
// and bf16, in an order that depends only on the shape.
struct Product {
  int64_t m, n, k;
  MatrixStrides a, b;
  Batch batch = {};
  DType in, out;  // in: of a, b and bias; out: of out and aux, may be f32 if `in` is bf16
  bool bias = false, add = false;
  bool aux = false;
  Epilogue epilogue = Epilogue::none;
};

struct Operands {
  void* out;
  const void *a, *b, *bias = nullptr;
  void* aux = nullptr;
};

// Computes p without an epilogue. m, n and the batch are not empty.
void product(const Product& p, const Operands& o, const Stream& stream);
// Starts p with its epilogue. Returns false, and does nothing, if the library does not take it.
bool fused_product(const Product& p, const Operands& o, const Stream& stream);
// True if the product that computes a weight's gradient also sums up the bias's gradient, if the library can do that
// (cuBLASLt's epilogue BGRADB), instead of a separate kernel. True at first, unless the environment says
// ISONORM_GPU_BGRADB=0.
std::atomic<bool>& fuses_bias_sums();

// kernels/product.cu: computes p without an epilogue.
void own_product(const Product& p, const Operands& o, const Stream& stream);
// Sets every row of out to the bias. out has the dtype of the bias.
void fill_with_bias(const Product& p, const Operands& o, const Stream& stream);
// sums [columns] = the sums over the rows of x [rows, columns], added to its values if `add`. columns > 0.
void column_sums(const Tensor& sums, const Tensor& x, bool add);

}  // namespace isonorm::gpu
