// One product of the emulated cuBLASLt: its description and its computation.
#pragma once

#include "tests/emulated_gpu/libraries/cublas_lt.h"

namespace isonorm::gpu::emulated {

struct LtProductDesc {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  int32_t transpose_a = 0, transpose_b = 0;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void *bias = nullptr, *aux = nullptr;
  int64_t aux_ld = 0;

  bool has(cublasLtEpilogue_t part) const { return epilogue & part; }
  bool uses_bias() const { return has(CUBLASLT_EPILOGUE_BIAS) || has(CUBLASLT_EPILOGUE_BGRADB); }
  bool uses_aux() const { return epilogue & 128; }
};
struct LtLayout {
  cudaDataType_t type;
  int64_t rows, columns, leading;
  int32_t batch = 1;
  int64_t step = 0;
};
struct LtCall {
  LtProductDesc product;
  LtLayout a, b, c, d;
  const void *at_a, *at_b, *at_c;
  void* at_d;
  double alpha = 1, beta = 0;
  std::byte* workspace = nullptr;
  size_t workspace_bytes = 0;
};

// Element i of p.
double read(const void* p, cudaDataType_t type, int64_t i);
// Must be called on a thread that can access the device's memory. Sums are f64 for f64, else f32.
void multiply(const LtCall& call);

}  // namespace isonorm::gpu::emulated
