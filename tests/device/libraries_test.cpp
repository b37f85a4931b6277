// cuBLASLt and cuDNN, emulated (tests/emulated_gpu/libraries) and called through the slots: their arguments, their
// results compared with the CPU in f64, and the kernels that run if the libraries cannot be used.
#include <set>

#include "autograd/fused/mlp.h"
#include "core/kernels/attention.h"
#include "core/kernels/matmul.h"
#include "gpu/device.h"
#include "gpu/libraries/blas.h"
#include "gpu/recorder.h"
#include "tests/emulated_gpu/runtime.h"
#include "tests/support/device.h"
#include "tests/support/ops.h"

using namespace isonorm;
using namespace isonorm::test;
using Catch::Matchers::Contains;
using gpu::emulated::fail_next;

namespace {

struct WithLibraries {
  WithLibraries() { gpu::emulated::runtime_settings().libraries = true; }
  ~WithLibraries() { gpu::emulated::runtime_settings().libraries = false; }
};

Tensor host(const Tensor& x) { return detached::to(detached::contiguous(to(x, kCpu)), DType::f64); }

// A tensor that begins `aside` elements after a multiple of 256 bytes.
Tensor placed(const Dims& shape, DType dtype, int64_t aside, Generator& g) {
  const int64_t n = numel(shape);
  const Tensor all = to(randn({n + aside}, {dtype}, g), kCuda);
  return detached::reshape(detached::narrow(all, 0, aside, n), shape);
}

using Names = std::multiset<std::string>;
template <class F> Names launched(const F& f) {
  const gpu::Recorder recorder;
  f();
  Names names;
  for (const gpu::Recorded& r : recorder.all())
    if (r.kind == gpu::Recorded::Kind::launch) names.insert(r.name);
  return names;
}
bool by_library(const Names& names) { return names.count("product.cublaslt") > 0; }

double tolerance(DType dtype, int64_t length) {
  return 4 * epsilon(acc_dtype(dtype)) * std::sqrt(static_cast<double>(length)) + 2 * epsilon(dtype);
}

constexpr DType kFloating[] = {DType::f64, DType::f32, DType::bf16};

}  // namespace

TEST_CASE("facts of libraries that are there") {
  const WithLibraries with;
  CHECK(gpu::libraries()[0].version == "13.1.0");
  CHECK(gpu::libraries()[1].version == "9.19.0");
  CHECK_THAT(gpu::line_of(gpu::libraries()[0]), Contains("cuBLASLt 13.1.0, "));
}

TEST_CASE("products by cuBLASLt, and by own kernels if sums of rows are not at a multiple of 16 bytes") {
  const WithLibraries with;
  Generator g{.seed = 3};
  constexpr int64_t m = 24, n = 40, k = 72;
  for (const DType dtype : kFloating)
    for (const int64_t aside : {0, 1}) {
      INFO(name_of(dtype) << ", " << aside << " aside");
      const Tensor x = placed({m, k}, dtype, 0, g), w = placed({n, k}, dtype, 0, g), dy = placed({m, n}, dtype, 0, g);
      const Tensor bias = placed({n}, dtype, aside, g), out = empty({m, n}, {dtype, kCuda});
      const Tensor expected = empty({m, n}, {DType::f64});
      const Names products = launched([&] { kernels::matmul.on(kCuda, out, x, detached::transpose(w, 0, 1), bias); });
      kernels::matmul.on(kCpu, expected, host(x), detached::transpose(host(w), 0, 1), host(bias));
      CHECK(by_library(products));
      CHECK(products.count("product.bias") == (aside == 0 ? 0 : 1));  // an epilogue needs an aligned bias
      check_close(host(out), expected, tolerance(dtype, k));

      const Tensor dw = empty({n, k}, {dtype, kCuda}), db = placed({n}, dtype, aside, g);
      const Tensor dw64 = empty({n, k}, {DType::f64}), db64 = empty({n}, {DType::f64});
      const Names gradients = launched([&] { kernels::weight_gradient.on(kCuda, dw, db, dy, x, false); });
      kernels::weight_gradient.on(kCpu, dw64, db64, host(dy), host(x), false);
      CHECK(by_library(gradients));
      CHECK((gradients.count("product.columns") == 0) == (aside == 0 && dtype != DType::f64));
      check_close(host(dw), dw64, tolerance(dtype, m));
      check_close(host(db), db64, tolerance(dtype, m));
    }
  CHECK_NOTHROW(gpu::synchronize(kCuda));
}

TEST_CASE("if no epilogue adds a bias, the product is added to it") {
  const WithLibraries with;
  Generator g{.seed = 23};
  const gpu::LibraryFacts before = gpu::libraries()[0];
  for (const DType dtype : kFloating) {
    INFO(name_of(dtype));
    constexpr int64_t m = 24, n = 56, k = 40;
    const Tensor x = placed({3, m, k}, dtype, 0, g), w = placed({3, k, n}, dtype, 0, g),
                 bias = placed({n}, dtype, 0, g);
    const Tensor y = full({3, m, n}, NAN, {dtype, kCuda}), expected = empty({3, m, n}, {DType::f64});
    kernels::matmul.on(kCpu, expected, host(x), host(w), host(bias));
    fail_next("cublasLtMatmulAlgoGetHeuristic", gpu::cudaErrorInvalidValue);  // for the product with its epilogue
    for (int i = 0; i < 2; ++i) {
      CHECK(launched([&] { kernels::matmul.on(kCuda, y, x, w, bias); }) == Names{"product.bias", "product.cublaslt"});
      check_close(host(y), expected, tolerance(dtype, k));
    }
  }
  CHECK(gpu::libraries()[0].epilogues_left == before.epilogues_left + 3);
  CHECK(gpu::libraries()[0].refusals == before.refusals);
}

TEST_CASE("a bias's gradient is summed by a fused product or by an own kernel") {
  const WithLibraries with;
  Generator g{.seed = 4};
  const Tensor x = placed({24, 16}, DType::bf16, 0, g), dy = placed({24, 32}, DType::bf16, 0, g);
  const Tensor dw = empty({32, 16}, {DType::bf16, kCuda}), db = empty({32}, {DType::bf16, kCuda});
  const auto run = [&] { return launched([&] { kernels::weight_gradient.on(kCuda, dw, db, dy, x, false); }); };
  CHECK(run() == Names{"product.cublaslt"});
  const Tensor fused = host(db);
  gpu::fuses_bias_sums() = false;
  CHECK(run() == Names{"product.columns", "product.cublaslt"});
  gpu::fuses_bias_sums() = true;
  check_close(host(db), fused, tolerance(DType::bf16, 24));
  // cuBLASLt computes sums only in the product's own type.
  const Tensor wide = empty({32}, {DType::f32, kCuda});
  CHECK(launched([&] { kernels::weight_gradient.on(kCuda, dw, wide, dy, x, false); }) ==
        Names{"product.columns", "product.cublaslt"});
  check_close(host(wide), fused, tolerance(DType::bf16, 24));
}

TEST_CASE("what cuBLASLt refuses when it is started is done by own kernels from then on, and told") {
  const WithLibraries with;
  Generator g{.seed = 5};
  const Tensor a = placed({18, 34}, DType::f32, 0, g), b = placed({34, 22}, DType::f32, 0, g);
  const Tensor out = empty({18, 22}, {DType::f32, kCuda}), expected = empty({18, 22}, {DType::f64});
  const auto run = [&] { return launched([&] { kernels::matmul.on(kCuda, out, a, b, Tensor()); }); };
  kernels::matmul.on(kCpu, expected, host(a), host(b), Tensor());
  const int64_t before = gpu::libraries()[0].refusals;
  fail_next("cublasLtMatmul", gpu::cudaErrorInvalidValue);
  for (int i = 0; i < 2; ++i) {
    CHECK(run() == Names{"product.numbers"});
    check_close(host(out), expected, tolerance(DType::f32, 34));
  }
  CHECK(gpu::libraries()[0].refusals == before + 1);
  CHECK(gpu::libraries()[0].refusal == "18 x 22 x 34, batch 1: cublasLtMatmul: status 13");
}

TEST_CASE("a feed-forward's GELU by tanh is fused, forward and backward, with the numbers of the CPU") {
  const WithLibraries with;
  Generator g{.seed = 6};
  const auto leaf = [&](const Dims& shape, DType dtype) { return detached::to(randn(shape, {}, g), dtype); };
  for (const DType dtype : {DType::f32, DType::bf16}) {
    INFO(name_of(dtype));
    const Tensor inputs[] = {leaf({20, 24}, dtype), leaf({64, 24}, dtype), leaf({64}, dtype), leaf({24, 64}, dtype),
                             leaf({24}, dtype)};
    const auto run = [&](Device device, DType as) {
      std::vector<Tensor> x;
      for (const Tensor& t : inputs) x.push_back(require_grad(to(detached::to(t, as), device)));
      const Tensor y = mlp(x[0], x[1], x[2], x[3], x[4], GeluForm::tanh);
      std::vector<Tensor> results = grad(sum(square(y)), {x[0], x[1], x[2], x[3], x[4]});
      results.push_back(detach(y));
      return results;
    };
    const auto expected = run(kCpu, DType::f64);
    std::vector<Tensor> got;
    const Names names = launched([&] { got = run(kCuda, dtype); });
    CHECK(names.count("mlp.slope") == 0);
    CHECK(names.count("mlp.activate") <= 1);  // in the backward, for the gradient of the second weight
    // The hidden rows, their gradients and y are rounded once each, and enter sums of 20 to 64 terms.
    const double eps = dtype == DType::bf16 ? 16 * epsilon(dtype) : 256 * epsilon(dtype);
    for (size_t i = 0; i < got.size(); ++i) {
      INFO("result " << i);
      check_close(host(got[i]), expected[i], eps);
    }
  }
}

TEST_CASE("attention by cuDNN, and by own kernels if cuDNN refuses or fails") {
  const WithLibraries with;
  Generator g{.seed = 7};
  constexpr int64_t batch = 2, rows = 34, heads = 2, size = 16;
  const auto inputs = [&](int64_t aside, int64_t keys = 34) {  // q, k, v and dout
    std::vector<Tensor> x;
    for (const int64_t n : {rows, keys, keys, rows})
      x.push_back(placed({batch, n, heads, size}, DType::bf16, aside, g));
    return x;
  };
  const auto view = [](const Tensor& t) { return detached::transpose(t, 1, 2); };  // [batch, heads, rows, size]
  const auto run = [&](const std::vector<Tensor>& x, bool causal, Device device, DType dtype) {
    std::vector<Tensor> v;
    for (const Tensor& t : x) v.push_back(device == kCpu ? host(t) : t);
    const TensorOptions as{dtype, device};
    const Tensor out = empty({batch, rows, heads, size}, as), dq = empty_like(out), dk = empty(x[1].shape(), as),
                 dv = empty_like(dk);
    const auto numbers = [&] { return empty({batch, heads, rows}, {acc_dtype(dtype), device}); };
    const kernels::AttentionSums sums{dtype == DType::bf16 ? Tensor() : numbers(), numbers()};
    const kernels::AttentionInputs in{view(v[0]), view(v[1]), view(v[2]), {}};
    kernels::attention_forward.on(device, {0.25, causal}, view(out), sums, in);
    kernels::attention_backward.on(device, {0.25, causal}, {view(dq), view(dk), view(dv)},
                                   {in, view(out), sums, view(v[3])});
    return std::vector<Tensor>{out, sums.top.defined() ? sums.top + sums.lse : sums.lse, dq, dk, dv};
  };
  const auto check = [&](const std::vector<Tensor>& x, bool causal) {
    const auto expected = run(x, causal, kCpu, DType::f64);
    std::vector<Tensor> got;
    const Names names = launched([&] { got = run(x, causal, kCuda, DType::bf16); });
    for (size_t i = 0; i < got.size(); ++i) {
      INFO("result " << i);
      check_close(host(got[i]), host(expected[i]), i == 1 ? 1e-5 : 8 * epsilon(DType::bf16));
    }
    return names;
  };
  const Names cudnn{"attention_forward.cudnn", "attention_backward.cudnn"};
  const auto ours = [](const Names& names) {
    return std::none_of(names.begin(), names.end(), [](const std::string& n) { return n.ends_with(".cudnn"); });
  };
  for (const bool causal : {false, true})
    for (const bool deterministic : {false, true}) {
      gpu::set_deterministic(deterministic);
      for (const int64_t keys : {rows, int64_t{50}}) CHECK(check(inputs(0, keys), causal) == cudnn);
    }
  gpu::set_deterministic(true);
  CHECK(ours(check(inputs(1), false)));
  const int64_t before = gpu::libraries()[1].refusals;
  fail_next("cudnnBackendExecute", gpu::cudaErrorInvalidValue);
  const Names forward_ours = check(inputs(0), true);
  CHECK(forward_ours.count("attention_forward.cudnn") == 0);
  CHECK(forward_ours.count("attention_backward.cudnn") == 1);
  CHECK(gpu::libraries()[1].refusals == before + 1);
  CHECK_THAT(gpu::libraries()[1].refusal, Contains("attention_forward.cudnn, 34 x 34 of 16: cuDNN: execution: "));
  CHECK(check(inputs(0), true) == forward_ours);
  gpu::set_deterministic(false);
  CHECK(check(inputs(0), false) == cudnn);
  gpu::set_deterministic(true);
}
