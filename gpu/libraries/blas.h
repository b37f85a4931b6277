// Products of matrices on a device behind one interface: by cuBLASLt where it is there and takes the views, else by the
// kernels of this library (kernels/product.cu), which take any.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/tensor.h"
#include "gpu/stream.h"

namespace isonorm::gpu {

// What is done with a product before it is stored. The library's alone: see fused_product().
enum class Epilogue : uint8_t {
  none,
  gelu_tanh,        // out = gelu_tanh(h) of h = a b + bias, which is left in aux where there is one
  gelu_tanh_slope,  // out = a b times the derivative of gelu_tanh at aux
  row_sums          // aux [m] = the sums of a's rows
};

struct MatrixStrides {
  int64_t row, column;  // one of them is 1, the other at least the size of the contiguous dimension
  bool operator==(const MatrixStrides&) const = default;
};

// The products of a batch: strides of a and b along its dimensions, the innermost last. Results lie one after the other.
struct Batch {
  int rank = 0;
  int64_t count = 1;
  int64_t size[kMaxRank] = {}, a[kMaxRank] = {}, b[kMaxRank] = {};
};

// out [m, n] = a [m, k] b [k, n] + bias [n], or added to what out holds; k may be 0. Sums are of f64 for f64, of f32 for f32 and bf16, in an order that
// follows from the shape alone.
struct Product {
  int64_t m, n, k;
  MatrixStrides a, b;
  Batch batch = {};
  DType in, out;  // of a, b and bias; of out and aux: f32, too, where `in` is bf16
  bool bias = false, add = false;
  bool aux = false;
  Epilogue epilogue = Epilogue::none;
};

struct Operands {
  void* out;
  const void *a, *b, *bias = nullptr;
  void* aux = nullptr;
};

// Without an epilogue. m, n and the batch are not empty.
void product(const Product& p, const Operands& o, const Stream& stream);
// Starts p with its epilogue; false, and nothing is done, where the library does not take it.
bool fused_product(const Product& p, const Operands& o, const Stream& stream);
// Whether a bias's gradient is summed up by the product that makes the weight's, where the library can do that (cuBLASLt's
// epilogue BGRADB), or by a kernel of its own. At first true, unless the environment says ISONORM_GPU_BGRADB=0.
std::atomic<bool>& fuses_bias_sums();

// kernels/product.cu: without an epilogue.
void own_product(const Product& p, const Operands& o, const Stream& stream);
// Sets every row of out to the bias. out has the dtype of the bias.
void fill_with_bias(const Product& p, const Operands& o, const Stream& stream);
// sums [columns] = the sums over the rows of x [rows, columns], on top of what it holds where `add`. columns > 0.
void column_sums(const Tensor& sums, const Tensor& x, bool add);

}  // namespace isonorm::gpu
