// The stand-in for cuBLASLt keeps the library's rules; an access to misaligned device memory loses the device.
#include "tests/emulated_gpu/libraries/cublas_lt.h"

#include "tests/gpu/device_floats.h"
#include "tests/support/catch.h"

using namespace isonorm;
using namespace isonorm::gpu;
using namespace isonorm::test;

namespace {

// D [n, m] = A [n, k] B [k, m] in f32, column-major, as the library is asked for it.
struct Ask {
  int64_t n = 8, m = 4, k = 4;
  cudaDataType_t in = CUDA_R_32F, out = CUDA_R_32F, scale = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void *bias = nullptr, *aux = nullptr;
  int64_t aux_ld = 8, leading = 0;  // 0: n
  uint32_t align = 256;

  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtHandle_t lt = nullptr;
  cublasLtMatmulHeuristicResult_t found{};

  cublasStatus_t find() {
    const auto set = [&](cublasLtMatmulDescAttributes_t what, const auto& v) {
      REQUIRE(cublasLtMatmulDescSetAttribute(product, what, &v, sizeof v) == CUBLAS_STATUS_SUCCESS);
    };
    REQUIRE(cublasLtCreate(&lt) == CUBLAS_STATUS_SUCCESS);
    cublasLtMatmulDescCreate(&product, compute, scale);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, aux_ld);
    cublasLtMatrixLayoutCreate(&a, in, static_cast<uint64_t>(n), static_cast<uint64_t>(k), n);
    cublasLtMatrixLayoutCreate(&b, in, static_cast<uint64_t>(k), static_cast<uint64_t>(m), k);
    cublasLtMatrixLayoutCreate(&d, out, static_cast<uint64_t>(n), static_cast<uint64_t>(m), leading ? leading : n);
    cublasLtMatmulPreferenceCreate(&preference);
    for (const auto which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                             CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      REQUIRE(cublasLtMatmulPreferenceSetAttribute(preference, which, &align, sizeof align) == CUBLAS_STATUS_SUCCESS);
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(lt, product, a, b, d, d, preference, 1, &found, &count);
    CHECK(count == (status == CUBLAS_STATUS_SUCCESS));
    return status;
  }
  cublasStatus_t multiply(float* at_d, const float* at_a, const float* at_b) {
    const float one = 1, zero = 0;
    return cublasLtMatmul(lt, product, &one, at_a, a, at_b, b, &zero, at_d, d, at_d, d, &found.algo, nullptr, 0,
                          stream_of(kGpu).handle());
  }
  ~Ask() {
    if (product) cublasLtMatmulDescDestroy(product);
    for (const auto l : {a, b, d})
      if (l) cublasLtMatrixLayoutDestroy(l);
    if (preference) cublasLtMatmulPreferenceDestroy(preference);
  }
};

void* at(intptr_t address) { return reinterpret_cast<void*>(address); }

cublasStatus_t found(Ask ask) { return ask.find(); }

}  // namespace

TEST_CASE("the stand-in for cuBLASLt finds an algorithm for types, sizes and epilogues that go together") {
  CHECK(found({}) == CUBLAS_STATUS_SUCCESS);
  CHECK(found({.in = CUDA_R_16BF}) == CUBLAS_STATUS_SUCCESS);
  CHECK(found({.in = CUDA_R_16BF, .out = CUDA_R_16BF}) == CUBLAS_STATUS_SUCCESS);
  CHECK(found({.out = CUDA_R_16BF}) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(found({.in = CUDA_R_16BF, .compute = CUBLAS_COMPUTE_32F_FAST_TF32}) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(found({.in = CUDA_R_64F, .out = CUDA_R_64F}) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(found({.in = CUDA_R_64F, .out = CUDA_R_64F, .scale = CUDA_R_64F, .compute = CUBLAS_COMPUTE_64F}) ==
        CUBLAS_STATUS_SUCCESS);
  CHECK(found({.leading = 7}) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(found({.epilogue = CUBLASLT_EPILOGUE_BIAS}) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(found({.epilogue = CUBLASLT_EPILOGUE_BIAS, .bias = at(4)}) == CUBLAS_STATUS_SUCCESS);  // alignment unchecked
  CHECK(found({.epilogue = CUBLASLT_EPILOGUE_DGELU}) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(found({.epilogue = CUBLASLT_EPILOGUE_DGELU, .aux = at(256)}) == CUBLAS_STATUS_SUCCESS);
  CHECK(found({.epilogue = CUBLASLT_EPILOGUE_DGELU, .aux = at(256), .aux_ld = 12}) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(found({.epilogue = CUBLASLT_EPILOGUE_DGELU, .aux = at(256), .align = 8}) == CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST_CASE("the stand-in for cuBLASLt refuses operands whose layout differs from the declared one") {
  DeviceFloats a(64), b(64), d(64);
  Ask ask;
  REQUIRE(ask.find() == CUBLAS_STATUS_SUCCESS);
  CHECK(ask.multiply(d.data(), a.data(), b.data()) == CUBLAS_STATUS_SUCCESS);
  CHECK(ask.multiply(d.data() + 1, a.data(), b.data()) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(ask.multiply(d.data(), a.data(), b.data() + 4) == CUBLAS_STATUS_INVALID_VALUE);
  synchronize();
}

TEST_CASE("an epilogue's memory that is not at a multiple of 16 bytes loses the device when the kernel runs") {
  DeviceFloats a(64), b(64), d(64), bias(64);
  for (const int64_t by : {4, 1}) {
    Ask ask{.epilogue = CUBLASLT_EPILOGUE_BIAS, .bias = bias.data() + by};
    REQUIRE(ask.find() == CUBLAS_STATUS_SUCCESS);
    CHECK(ask.multiply(d.data(), a.data(), b.data()) == CUBLAS_STATUS_SUCCESS);
    const cudaError_t expected = by == 1 ? cudaErrorMisalignedAddress : cudaSuccess;
    CHECK(cudaStreamSynchronize(stream_of(kGpu).handle()) == expected);
    void* p = nullptr;
    CHECK(cudaMalloc(&p, 8) == expected);
    emulated::lose_device(cudaSuccess);
    (void)cudaFree(p);
  }
}
