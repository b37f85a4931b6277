// Products by cuBLASLt, opened at run time. If its headers were missing at build time, it takes no product.
#pragma once

#include "gpu/libraries/blas.h"

#ifdef ISONORM_CUBLASLT
#include <functional>
#include <map>
#include <mutex>
#include <string>

#ifdef ISONORM_GPU_EMULATED
#include "tests/emulated_gpu/libraries/cublas_lt.h"
#else
#include <cublasLt.h>
#endif

#include "gpu/dynamic.h"
#endif

namespace isonorm::gpu {

// Starts the product with its epilogue. Returns false, and does nothing, if the library is missing or does not take it.
bool lt_product(const Product& p, const Operands& o, const Stream& stream);

#ifdef ISONORM_CUBLASLT

// The library's functions that are used.
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

// A product as the library sees it, in column-major order: D [n, m] = op(A) op(B) with our b as A, our a as B. It holds
// everything that a plan depends on.
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
  // refused: gets one line for each plan that could not be made or that failed when it was started. epilogue: the plan
  // had an epilogue and could not be made; the caller then asks for the product without it.
  using Refused = std::function<void(std::string why, bool epilogue)>;
  Lt(const LtFunctions& functions, Refused refused) : f_(functions), refused_(std::move(refused)) {}
  Lt(const Lt&) = delete;
  Lt& operator=(const Lt&) = delete;

  // Starts the product. Returns false, and does nothing, if there is no plan for it, or if the library refuses the
  // plan's first call; then that plan is not tried again. memory(bytes) returns a workspace for one call of the
  // library. The calling thread's current device must be `device`.
  bool product(const Product& p, const Operands& o, int device, cudaStream_t stream,
               const std::function<void*(int64_t)>& memory);

 private:
  struct Plan {
    cublasLtMatmulDesc_t product = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, out = nullptr;
    cublasLtMatmulHeuristicResult_t found{};
    bool taken = false;
  };
  Plan& plan_of(const LtProduct& p, const Operands& o);
  void make(Plan& plan, const LtProduct& p, const Operands& o);
  void drop(Plan& plan);
  void refuse(Plan& plan, const LtProduct& p, const std::string& why, bool epilogue);
  cublasLtMatrixLayout_t layout(DType dtype, int64_t rows, int64_t columns, int64_t leading, int64_t batch,
                                int64_t step);
  void set_pointers(const Plan& plan, const LtProduct& p, const Operands& o);
  cublasLtHandle_t handle(int device);

  LtFunctions f_;
  Refused refused_;
  std::mutex mutex_;
  std::map<int, cublasLtHandle_t> handles_;
  std::map<LtProduct, Plan> plans_;
};

#endif

}  // namespace isonorm::gpu
