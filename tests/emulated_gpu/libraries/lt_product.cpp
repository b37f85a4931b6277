#include "tests/emulated_gpu/libraries/lt_product.h"

#include <cmath>
#include <cstring>

#include "core/dtype.h"

namespace isonorm::gpu::emulated {
namespace {

void write(void* p, cudaDataType_t type, int64_t i, double v) {
  if (type == CUDA_R_64F)
    static_cast<double*>(p)[i] = v;
  else if (type == CUDA_R_32F)
    static_cast<float*>(p)[i] = static_cast<float>(v);
  else
    static_cast<bf16*>(p)[i] = bf16(static_cast<float>(v));
}

// x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3), and its derivative.
constexpr double kRoot = 0.79788456080286535588, kCube = 0.044715;
double gelu(double x) { return 0.5 * x * (1 + std::tanh(kRoot * (x + kCube * x * x * x))); }
double gelu_slope(double x) {
  const double t = std::tanh(kRoot * (x + kCube * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kRoot * (1 + 3 * kCube * x * x);
}

// A: the type of the sums.
template <class A> void multiply_in(const LtCall& call) {
  const auto& [product, a, b, c, d, at_a, at_b, at_c, at_d, alpha, beta, workspace, workspace_bytes] = call;
  const int64_t depth = product.transpose_a ? a.rows : a.columns;
  const auto place = [](const LtLayout& l, int64_t i, int64_t row, int64_t column) {
    return i * l.step + row + column * l.leading;
  };
  const auto left = [&](int64_t i, int64_t row, int64_t k) {
    return static_cast<A>(read(at_a, a.type, product.transpose_a ? place(a, i, k, row) : place(a, i, row, k)));
  };
  const auto right = [&](int64_t i, int64_t k, int64_t column) {
    return static_cast<A>(read(at_b, b.type, product.transpose_b ? place(b, i, column, k) : place(b, i, k, column)));
  };
  if (workspace_bytes) std::memset(workspace, 0x5a, workspace_bytes);
  for (int64_t i = 0; i < d.batch; ++i)
    for (int64_t column = 0; column < d.columns; ++column) {
      for (int64_t row = 0; row < d.rows; ++row) {
        A v = 0;
        for (int64_t k = 0; k < depth; ++k) v += left(i, row, k) * right(i, k, column);
        v *= static_cast<A>(alpha);
        if (beta != 0) v += static_cast<A>(beta * read(at_c, c.type, place(c, i, row, column)));
        if (product.has(CUBLASLT_EPILOGUE_BIAS)) v += static_cast<A>(read(product.bias, d.type, row));
        const int64_t kept = row + column * product.aux_ld;
        if (product.has(CUBLASLT_EPILOGUE_GELU)) {
          if (product.uses_aux()) write(product.aux, d.type, kept, v);
          v = static_cast<A>(gelu(v));
        }
        if (product.epilogue == CUBLASLT_EPILOGUE_DGELU)
          v *= static_cast<A>(gelu_slope(read(product.aux, d.type, kept)));
        write(at_d, d.type, place(d, i, row, column), v);
      }
      if (!product.has(CUBLASLT_EPILOGUE_BGRADB)) continue;
      A sum = 0;
      for (int64_t k = 0; k < depth; ++k) sum += right(i, k, column);
      write(product.bias, d.type, column, sum);
    }
}

}  // namespace

double read(const void* p, cudaDataType_t type, int64_t i) {
  if (type == CUDA_R_64F) return static_cast<const double*>(p)[i];
  if (type == CUDA_R_32F) return static_cast<const float*>(p)[i];
  return static_cast<float>(static_cast<const bf16*>(p)[i]);
}

void multiply(const LtCall& call) {
  call.product.scale == CUDA_R_64F ? multiply_in<double>(call) : multiply_in<float>(call);
}

}  // namespace isonorm::gpu::emulated
