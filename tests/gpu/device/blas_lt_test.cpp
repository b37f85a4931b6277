// The calls to cuBLASLt that a product makes, recorded by functions that replace the library's. No device is needed.
#include "gpu/libraries/blas_lt.h"

#include "tests/support/catch.h"

#ifdef ISONORM_CUBLASLT

#include <cstring>
#include <string>
#include <vector>

#include "core/error.h"
#include "gpu/device.h"

using namespace isonorm;
using namespace isonorm::gpu;

namespace {

std::vector<std::string> calls;
bool has_driver = true, has_algorithm = true;
int passes = -1;      // calls that succeed before one fails; below 0: all do
int descriptors = 0;  // created and not yet destroyed

template <class T> T value_of(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof(T));
  return v;
}
std::string value_of(const void* p, size_t bytes) {
  return bytes == 4 ? std::to_string(value_of<uint32_t>(p)) : std::to_string(value_of<int64_t>(p));
}
// A pointer to this address; nothing is read there.
void* at(intptr_t address) { return reinterpret_cast<void*>(address); }
template <class T> cublasStatus_t make(T* to) {
  *to = reinterpret_cast<T>(at(0x1000 + ++descriptors));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t create(cublasLtHandle_t* h) {
  if (!has_driver) return CUBLAS_STATUS_NOT_INITIALIZED;
  *h = reinterpret_cast<cublasLtHandle_t>(at(1));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t create_product(cublasLtMatmulDesc_t* d, cublasComputeType_t compute, cudaDataType_t scale) {
  calls.push_back(text("product ", static_cast<int>(compute), ' ', static_cast<int>(scale)));
  return make(d);
}
cublasStatus_t set_product(cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t a, const void* v, size_t bytes) {
  const char* const names[] = {"compute",  "scale", "mode", "transa", "transb", "transc", "fill",
                               "epilogue", "bias",  "?",    "?",      "aux",    "aux_ld"};
  calls.push_back(text(names[a], ' ', value_of(v, bytes)));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t create_layout(cublasLtMatrixLayout_t* l, cudaDataType type, uint64_t rows, uint64_t columns,
                             int64_t ld) {
  calls.push_back(text("layout ", static_cast<int>(type), ' ', rows, 'x', columns, " ld ", ld));
  return make(l);
}
cublasStatus_t set_layout(cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t a, const void* v, size_t bytes) {
  calls.push_back(text(a == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? "batch " : "step ", value_of(v, bytes)));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t set_preference(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t a, const void* v,
                              size_t bytes) {
  calls.push_back(text("prefer ", static_cast<int>(a), ' ', value_of(v, bytes)));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t find(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                    cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,
                    cublasLtMatmulHeuristicResult_t* found, int* count) {
  calls.push_back("find");
  *found = {};
  found->workspaceSize = 512;
  *count = has_algorithm;
  return has_algorithm ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t multiply(cublasLtHandle_t, cublasLtMatmulDesc_t, const void* alpha, const void* a,
                        cublasLtMatrixLayout_t, const void* b, cublasLtMatrixLayout_t, const void* beta, const void* c,
                        cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t*,
                        void* workspace, size_t bytes, cudaStream_t) {
  const auto address = [](const void* p) { return reinterpret_cast<intptr_t>(p); };
  CHECK(c == d);
  CHECK(bytes == 512);
  calls.push_back(text("multiply ", value_of<float>(alpha), ' ', address(a), ' ', address(b), ' ',
                       value_of<float>(beta), ' ', address(d), ' ', address(workspace)));
  return passes < 0 || passes-- > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
template <class T> cublasStatus_t destroy(T) {
  --descriptors;
  return CUBLAS_STATUS_SUCCESS;
}

const LtFunctions kRecorded{&create,
                            &create_product,
                            &set_product,
                            &destroy<cublasLtMatmulDesc_t>,
                            &create_layout,
                            &set_layout,
                            &destroy<cublasLtMatrixLayout_t>,
                            &make<cublasLtMatmulPreference_t>,
                            &set_preference,
                            &destroy<cublasLtMatmulPreference_t>,
                            &find,
                            &multiply};

using Calls = std::vector<std::string>;

// x [32, 16] times the transpose of w [24, 16].
Product linear(DType dtype) {
  Product p;
  p.m = 32, p.n = 24, p.k = 16;
  p.a = {16, 1};
  p.b = {1, 16};
  p.in = p.out = dtype;
  return p;
}
Operands operands() { return {at(4096), at(512), at(1024 + 16)}; }

Calls refusals;
void refused(std::string why, bool epilogue) { refusals.push_back(std::move(why) + (epilogue ? ", epilogue" : "")); }

// True if the product is started.
bool takes(Lt& lt, const Product& p, const Operands& o) {
  return lt.product(p, o, 0, nullptr, [](int64_t) { return at(256); });
}

// The calls that make the plan, without the preferences.
Calls planned(const Product& p, const Operands& o) {
  Lt lt(kRecorded, refused);
  calls.clear();
  CHECK(takes(lt, p, o));
  Calls before;
  for (const std::string& c : calls) {
    if (c == "find") break;
    if (!c.starts_with("prefer")) before.push_back(c);
  }
  return before;
}

}  // namespace

TEST_CASE("a product is asked of cuBLASLt column by column, with the operands exchanged") {
  // compute 68: 32F, 70: 64F, 77: 32F with TF32; types 0: 32F, 1: 64F, 14: 16BF; epilogue 1: none, 4: bias
  const Calls layouts{"layout 14 16x24 ld 16", "batch 1", "step 0",  "layout 14 16x32 ld 16", "batch 1", "step 0",
                      "layout 14 24x32 ld 24", "batch 1", "step 768"};
  Calls expected{"product 68 0", "transa 1", "transb 0", "epilogue 1"};
  expected.insert(expected.end(), layouts.begin(), layouts.end());
  CHECK(planned(linear(DType::bf16), operands()) == expected);

  Product p = linear(DType::bf16);
  Operands o = operands();
  p.bias = true;
  o.bias = at(2048);
  expected = {"product 68 0", "transa 1", "transb 0", "epilogue 4", "bias 2048"};
  expected.insert(expected.end(), layouts.begin(), layouts.end());
  CHECK(planned(p, o) == expected);

  CHECK(planned(linear(DType::f64), operands())[0] == "product 70 1");
  CHECK(planned(linear(DType::f32), operands())[0] == "product 68 0");
  allow_tf32(true);
  CHECK(planned(linear(DType::f32), operands())[0] == "product 77 0");
  CHECK(planned(linear(DType::f64), operands())[0] == "product 70 1");
  allow_tf32(false);
}

TEST_CASE("epilogues") {
  Product p = linear(DType::bf16);
  Operands o = operands();
  const auto attributes = [&] {
    Calls all;
    for (const std::string& c : planned(p, o))
      if (c.starts_with("epi") || c.starts_with("bias") || c.starts_with("aux")) all.push_back(c);
    return all;
  };
  p.epilogue = Epilogue::gelu_tanh;
  CHECK(attributes() == Calls{"epilogue 32"});
  p.bias = p.aux = true;
  o.bias = at(2048);
  o.aux = at(8192);
  CHECK(attributes() == Calls{"epilogue 164", "aux_ld 24", "bias 2048", "aux 8192"});
  p.bias = false;
  p.epilogue = Epilogue::gelu_tanh_slope;
  CHECK(attributes() == Calls{"epilogue 192", "aux_ld 24", "aux 8192"});
  p.epilogue = Epilogue::row_sums;
  CHECK(attributes() == Calls{"epilogue 512", "bias 8192"});

  Lt lt(kRecorded, refused);
  p.add = true;
  CHECK(!takes(lt, p, o));
  p.add = false;
  p.epilogue = Epilogue::gelu_tanh_slope;
  o.aux = o.out;
  CHECK(!takes(lt, p, o));
  o.aux = at(8192);
  p.n = 23;
  CHECK(!takes(lt, p, o));
  p = linear(DType::bf16);
  p.k = 0;
  CHECK(!takes(lt, p, o));
}

TEST_CASE("cuBLASLt needs biases, auxiliary outputs and row sums aligned to 16 bytes; else own kernels run") {
  Lt lt(kRecorded, refused);
  Product p = linear(DType::bf16);
  Operands o = operands();
  const auto both = [&](auto& pointer, Epilogue epilogue) {
    p.epilogue = epilogue;
    for (const intptr_t by : {16, 8, 4, 2}) {
      INFO("epilogue " << static_cast<int>(epilogue) << " at a multiple of " << by);
      pointer = at(8192 + by);
      calls.clear();
      CHECK(takes(lt, p, o) == (by == 16));
      CHECK(calls.empty() == (by < 16));  // the library is not even asked
    }
    pointer = at(8192);
  };
  p.bias = true;
  both(o.bias, Epilogue::none);
  p.aux = true;
  both(o.bias, Epilogue::gelu_tanh);
  both(o.aux, Epilogue::gelu_tanh);
  p.bias = false;
  o.bias = nullptr;
  both(o.aux, Epilogue::gelu_tanh_slope);
  both(o.aux, Epilogue::row_sums);
  p = linear(DType::bf16);  // the library would read its bias as f32
  p.out = DType::f32;
  CHECK(takes(lt, p, o));
  p.bias = true;
  o.bias = at(8192);
  CHECK(!takes(lt, p, o));
}

TEST_CASE("a plan whose call fails is told, and not asked for again") {
  Lt lt(kRecorded, refused);
  Product p = linear(DType::f32);
  refusals.clear();
  descriptors = 0;
  passes = 0;
  CHECK(!takes(lt, p, operands()));
  CHECK(refusals == Calls{text("32 x 24 x 16, batch 1: cublasLtMatmul: status ",
                               static_cast<int>(CUBLAS_STATUS_EXECUTION_FAILED))});
  CHECK(descriptors == 0);
  passes = -1;
  calls.clear();
  CHECK(!takes(lt, p, operands()));
  CHECK(calls.empty());
  CHECK(takes(lt, linear(DType::bf16), operands()));
  // After the first call of a batch its results may have been added already.
  p.batch = Batch{2, 6, {3, 2}, {4000, 512}, {24, 0}};
  passes = 1;
  CHECK_THROWS_WITH(takes(lt, p, operands()), text("product: cublasLtMatmul, behind the first of a batch: status ",
                                                   static_cast<int>(CUBLAS_STATUS_EXECUTION_FAILED)));
  passes = -1;
}

TEST_CASE("algorithms with a varying order of sums are excluded, and alignments hold for all products") {
  Lt lt(kRecorded, refused);
  Product p = linear(DType::bf16);
  p.batch = Batch{2, 6, {3, 2}, {0, 512}, {24, 0}};
  calls.clear();
  CHECK(takes(lt, p, {at(4096), at(512), at(1024)}));
  Calls preferences;
  for (const std::string& c : calls)
    if (c.starts_with("prefer")) preferences.push_back(c);
  // workspace; reduction in the compute type; alignments of the library's A (our b, steps of 48 bytes), B, C, D
  CHECK(preferences ==
        Calls{"prefer 1 33554432", "prefer 3 2", "prefer 5 16", "prefer 6 256", "prefer 7 256", "prefer 8 256"});
}

TEST_CASE("a plan is made once; the outer dimensions of a batch are calls of their own") {
  Lt lt(kRecorded, refused);
  Product p = linear(DType::f32);
  p.batch = Batch{2, 6, {3, 2}, {4000, 512}, {24, 0}};
  p.add = true;
  calls.clear();
  int workspaces = 0;
  const auto memory = [&](int64_t bytes) {
    CHECK(bytes == 512);
    return at(256 * ++workspaces);
  };
  REQUIRE(takes(lt, p, operands()));
  CHECK(std::count(calls.begin(), calls.end(), "batch 2") == 3);
  CHECK(std::count(calls.begin(), calls.end(), "step 512") == 1);
  calls.clear();
  CHECK(lt.product(p, operands(), 0, nullptr, memory));
  CHECK(calls == Calls{"multiply 1 1040 512 1 4096 256", "multiply 1 1136 16512 1 10240 512",
                       "multiply 1 1232 32512 1 16384 768"});
  Operands other = operands();
  other.a = at(520);  // another alignment
  calls.clear();
  CHECK(takes(lt, p, other));
  CHECK(std::count(calls.begin(), calls.end(), "find") == 1);
}

TEST_CASE("without an algorithm or a driver the product is declined, and nothing is leaked") {
  descriptors = 0;
  has_algorithm = false;
  Lt lt(kRecorded, refused);
  refusals.clear();
  CHECK(!takes(lt, linear(DType::f32), operands()));
  CHECK(refusals == Calls{"32 x 24 x 16, batch 1: no algorithm"});
  CHECK(descriptors == 0);
  Product p = linear(DType::f32);
  p.bias = true;
  Operands o = operands();
  o.bias = at(2048);
  CHECK(!takes(lt, p, o));
  CHECK(refusals.back() == "32 x 24 x 16, batch 1: no algorithm, epilogue");
  has_algorithm = true;
  has_driver = false;
  Lt none(kRecorded, refused);
  refusals.clear();
  CHECK(!takes(none, linear(DType::f32), operands()));
  CHECK(refusals == Calls{"32 x 24 x 16, batch 1: product: cublasLtCreate: status 1"});
  CHECK(descriptors == 0);
  has_driver = true;
}

TEST_CASE("the library has every function if it is installed") {
  WARN(line_of(cublas_lt().facts()));
  if (!cublas_lt()) return;
  CHECK_NOTHROW(LtFunctions::of(cublas_lt()));
  CHECK(cublas_lt().version() >= 130000);
}

#endif
