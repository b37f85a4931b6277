#include "tests/emulated_gpu/libraries/cublas_lt.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "tests/emulated_gpu/libraries/lt_product.h"
#include "tests/emulated_gpu/streams.h"

namespace isonorm::gpu {
namespace emulated {

struct LtHandle {};
struct LtPreference {
  size_t workspace = 0;
  uint32_t reduction = 7, align[4] = {256, 256, 256, 256};  // of A, B, C, D
};

namespace {

using Guard = std::lock_guard<std::recursive_mutex>;
constexpr size_t kWorkspace = 512;  // for an algorithm that splits the depth
constexpr uint64_t kMark = 0x15010;

// The alignments and workspace that an algorithm requires.
struct Algorithm {
  uint64_t mark;
  uint32_t align[4];
  size_t workspace;
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

bool misaligned(const void* p, uint32_t by) { return reinterpret_cast<uintptr_t>(p) % by != 0; }

// The library's table of types ("cublasLtMatmul() supports the following computeType, ..."): bias and aux have D's
// type.
bool types_fit(const LtProductDesc& p, const LtLayout& a, const LtLayout& b, const LtLayout& c, const LtLayout& d) {
  if (a.type != b.type || c.type != d.type) return false;
  if (p.compute == CUBLAS_COMPUTE_64F) return p.scale == CUDA_R_64F && a.type == CUDA_R_64F && d.type == CUDA_R_64F;
  if (p.scale != CUDA_R_32F) return false;
  if (a.type == CUDA_R_32F) return d.type == CUDA_R_32F;
  return p.compute == CUBLAS_COMPUTE_32F && a.type == CUDA_R_16BF && d.type != CUDA_R_64F;
}

bool sizes_fit(const LtProductDesc& p, const LtLayout& a, const LtLayout& b, const LtLayout& c, const LtLayout& d) {
  const auto turned = [](const LtLayout& l, int32_t t) {
    return t ? std::pair(l.columns, l.rows) : std::pair(l.rows, l.columns);
  };
  const auto [m, k] = turned(a, p.transpose_a);
  const auto [k2, n] = turned(b, p.transpose_b);
  const auto proper = [&](const LtLayout& l) {
    return l.rows > 0 && l.columns > 0 && l.leading >= l.rows && l.batch == d.batch;
  };
  return k == k2 && m == d.rows && n == d.columns && c.rows == d.rows && c.columns == d.columns && proper(a) &&
         proper(b) && proper(c) && proper(d);
}

cublasStatus_t judged(const LtProductDesc& p, const LtLayout& a, const LtLayout& b, const LtLayout& c,
                      const LtLayout& d) {
  if (!sizes_fit(p, a, b, c, d)) return CUBLAS_STATUS_INVALID_VALUE;
  if (!types_fit(p, a, b, c, d)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (p.epilogue == CUBLASLT_EPILOGUE_DEFAULT) return CUBLAS_STATUS_SUCCESS;
  if (p.uses_bias() && !p.bias) return CUBLAS_STATUS_INVALID_VALUE;
  if (p.epilogue == CUBLASLT_EPILOGUE_BIAS) return CUBLAS_STATUS_SUCCESS;
  if (d.batch > 1 || p.scale == CUDA_R_64F) return CUBLAS_STATUS_NOT_SUPPORTED;
  // "must be divisible by 8 and be no less than the number of rows in the output matrix"
  if (p.uses_aux() && (!p.aux || p.aux_ld % 8 != 0 || p.aux_ld < d.rows)) return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

template <class T> cublasStatus_t take(T& to, const void* v, size_t bytes) {
  if (bytes != sizeof(T) || !v) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, v, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T> cublasStatus_t drop(T* p) {
  delete p;
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

void* cublas_lt_function(const char* name) {
  const auto entry = [](auto* f) { return reinterpret_cast<void*>(f); };
  static const std::map<std::string, void*> all{
      {"cublasLtGetVersion", entry(&cublasLtGetVersion)},
      {"cublasLtCreate", entry(&cublasLtCreate)},
      {"cublasLtMatmulDescCreate", entry(&cublasLtMatmulDescCreate)},
      {"cublasLtMatmulDescSetAttribute", entry(&cublasLtMatmulDescSetAttribute)},
      {"cublasLtMatmulDescDestroy", entry(&cublasLtMatmulDescDestroy)},
      {"cublasLtMatrixLayoutCreate", entry(&cublasLtMatrixLayoutCreate)},
      {"cublasLtMatrixLayoutSetAttribute", entry(&cublasLtMatrixLayoutSetAttribute)},
      {"cublasLtMatrixLayoutDestroy", entry(&cublasLtMatrixLayoutDestroy)},
      {"cublasLtMatmulPreferenceCreate", entry(&cublasLtMatmulPreferenceCreate)},
      {"cublasLtMatmulPreferenceSetAttribute", entry(&cublasLtMatmulPreferenceSetAttribute)},
      {"cublasLtMatmulPreferenceDestroy", entry(&cublasLtMatmulPreferenceDestroy)},
      {"cublasLtMatmulAlgoGetHeuristic", entry(&cublasLtMatmulAlgoGetHeuristic)},
      {"cublasLtMatmul", entry(&cublasLtMatmul)}};
  const auto at = all.find(name);
  return at == all.end() ? nullptr : at->second;
}

}  // namespace emulated

using namespace emulated;

size_t cublasLtGetVersion() { return 130100; }
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  const Guard guard(lock());
  if (injected(__func__)) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new LtHandle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* d, cublasComputeType_t compute, cudaDataType_t scale) {
  *d = new LtProductDesc{compute, scale};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t a, const void* v,
                                              size_t bytes) {
  switch (a) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return take(d->transpose_a, v, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return take(d->transpose_b, v, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return take(d->epilogue, v, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return take(d->bias, v, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return take(d->aux, v, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return take(d->aux_ld, v, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) { return drop(d); }

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* l, cudaDataType_t type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  *l = new LtLayout{type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), leading};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t a,
                                                const void* v, size_t bytes) {
  return a == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? take(l->batch, v, bytes) : take(l->step, v, bytes);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) { return drop(l); }

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* p) {
  *p = new LtPreference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                    cublasLtMatmulPreferenceAttributes_t a, const void* v,
                                                    size_t bytes) {
  if (a == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) return take(p->workspace, v, bytes);
  if (a == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) return take(p->reduction, v, bytes);
  const int which = a - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
  return which >= 0 && which < 4 ? take(p->align[which], v, bytes) : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) { return drop(p); }

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t* found, int* count) {
  const Guard guard(lock());
  *count = 0;
  if (!handle || most < 1) return CUBLAS_STATUS_INVALID_VALUE;
  if (injected(__func__)) return CUBLAS_STATUS_NOT_SUPPORTED;
  const cublasStatus_t status = judged(*product, *a, *b, *c, *d);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  Algorithm algorithm{.mark = kMark, .align = {}, .workspace = 0};
  std::copy_n(preference->align, 4, algorithm.align);
  const bool plain = product->epilogue == CUBLASLT_EPILOGUE_DEFAULT || product->epilogue == CUBLASLT_EPILOGUE_BIAS;
  const uint32_t least = *std::min_element(preference->align, preference->align + 4);
  if (!plain && least < 16) return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool cuts = plain && (preference->reduction & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) &&
                    preference->workspace >= kWorkspace && (product->transpose_a ? a->rows : a->columns) >= 64;
  algorithm.workspace = cuts ? kWorkspace : 0;
  *found = {};
  std::memcpy(&found->algo, &algorithm, sizeof algorithm);
  found->workspaceSize = algorithm.workspace;
  *count = 1;
  return found->state = CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t la, const void* b, cublasLtMatrixLayout_t lb, const void* beta,
                              const void* c, cublasLtMatrixLayout_t lc, void* d, cublasLtMatrixLayout_t ld,
                              const cublasLtMatmulAlgo_t* algo, void* workspace, size_t bytes, cudaStream_t stream) {
  const Guard guard(lock());
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (injected(__func__) || of(stream).device != current_device()) return CUBLAS_STATUS_EXECUTION_FAILED;
  const cublasStatus_t status = judged(*product, *la, *lb, *lc, *ld);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  Algorithm algorithm;
  std::memcpy(&algorithm, algo, sizeof algorithm);
  const void* const operands[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i)
    if (algorithm.mark != kMark || misaligned(operands[i], algorithm.align[i])) return CUBLAS_STATUS_INVALID_VALUE;
  if (bytes < algorithm.workspace || (algorithm.workspace && (!workspace || misaligned(workspace, 16))))
    return CUBLAS_STATUS_INVALID_VALUE;
  const void* const epilogue[] = {product->uses_bias() ? product->bias : nullptr,
                                  product->uses_aux() ? product->aux : nullptr};
  for (const void* p :
       {a, b, c, static_cast<const void*>(d), static_cast<const void*>(workspace), epilogue[0], epilogue[1]})
    check_argument(stream, __func__, p);
  LtCall call{*product, *la, *lb, *lc, *ld, a, b, c, d};
  call.alpha = read(alpha, product->scale, 0), call.beta = read(beta, product->scale, 0);
  call.workspace = static_cast<std::byte*>(workspace), call.workspace_bytes = algorithm.workspace;
  enqueue(of(stream), {[call] {
                         const LtProductDesc& p = call.product;
                         if ((p.uses_bias() && misaligned(p.bias, 16)) || (p.uses_aux() && misaligned(p.aux, 16)))
                           return lose_device(cudaErrorMisalignedAddress);
                         multiply(call);
                       },
                       "cublasLtMatmul"});
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace isonorm::gpu
