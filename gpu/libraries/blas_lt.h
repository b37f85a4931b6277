// Products by cuBLASLt, opened at run time. Where CUDA is emulated or its headers were not there, nothing is taken.
#pragma once

#include "gpu/libraries/blas.h"

#if !defined(ISONORM_GPU_EMULATED) && __has_include(<cublasLt.h>)
#include <functional>
#include <map>
#include <mutex>

#include <cublasLt.h>

#include "gpu/dynamic.h"
#endif

namespace isonorm::gpu {

// Whether the library is there and has a plan for the product with its epilogue.
bool lt_takes(const Product& p, const Operands& o, const Stream& stream);
// Starts it; false where it is not taken.
bool lt_product(const Product& p, const Operands& o, const Stream& stream);

#if !defined(ISONORM_GPU_EMULATED) && __has_include(<cublasLt.h>)

// What is used of the library.
struct LtFunctions {
  decltype(cublasLtCreate)* create;
  decltype(cublasLtMatmulDescCreate)* create_product;
  decltype(cublasLtMatmulDescSetAttribute)* set_product;
  decltype(cublasLtMatmulDescDestroy)* destroy_product;
  decltype(cublasLtMatrixLayoutCreate)* create_layout;
  decltype(cublasLtMatrixLayoutSetAttribute)* set_layout;
  decltype(cublasLtMatrixLayoutDestroy)* destroy_layout;
  decltype(cublasLtMatmulPreferenceCreate)* create_preference;
  decltype(cublasLtMatmulPreferenceSetAttribute)* set_preference;
  decltype(cublasLtMatmulPreferenceDestroy)* destroy_preference;
  decltype(cublasLtMatmulAlgoGetHeuristic)* find_algorithm;
  decltype(cublasLtMatmul)* multiply;

  static LtFunctions of(const Library& library);
};

// A product as the library sees it, column by column: D [n, m] = op(A) op(B) with our b as A, our a as B. All that a plan
// depends on.
struct LtProduct {
  int device;
  int64_t m, n, k, lda, ldb, batch, step_a, step_b;
  bool transpose_a, transpose_b, bias, add, aux, tf32;
  DType in, out;
  Epilogue epilogue;
  int align_a, align_b, align_out, align_bias, align_aux;  // bytes, up to 256, in all products of the batch

  LtProduct(const Product& p, const Operands& o, int device);
  auto operator<=>(const LtProduct&) const = default;
};

// Plans by product: descriptors and the first algorithm that the library proposes among those without atomics. They are
// made once and live until the process ends.
class Lt {
 public:
  explicit Lt(const LtFunctions& functions) : f_(functions) {}
  Lt(const Lt&) = delete;
  Lt& operator=(const Lt&) = delete;

  // The calling thread's current device is `device`.
  bool takes(const Product& p, const Operands& o, int device);
  // What takes() promised. memory(bytes) is a workspace for one call of the library.
  void product(const Product& p, const Operands& o, int device, cudaStream_t stream,
               const std::function<void*(int64_t)>& memory);

 private:
  struct Plan {
    cublasLtMatmulDesc_t product = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, out = nullptr;
    cublasLtMatmulHeuristicResult_t found{};
    bool taken = false;
  };
  Plan& plan_of(const LtProduct& p, const Operands& o);
  Plan make(const LtProduct& p, const Operands& o);
  cublasLtMatrixLayout_t layout(DType dtype, int64_t rows, int64_t columns, int64_t leading, int64_t batch,
                                int64_t step);
  void set_pointers(const Plan& plan, const LtProduct& p, const Operands& o);
  cublasLtHandle_t handle(int device);  // null where the library says that there is no driver

  LtFunctions f_;
  std::mutex mutex_;
  std::map<int, cublasLtHandle_t> handles_;
  std::map<LtProduct, Plan> plans_;
};

#endif

}  // namespace isonorm::gpu
