// Kernels over rows on a device compared with the CPU, at the sizes at which they change their algorithm: rows in
// registers or read again, of a warp or of a block, one piece or several. The rows of tests/op_cases are mostly
// smaller.
#include <limits>

#include "autograd/ops/norm.h"
#include "core/kernels/index.h"
#include "core/kernels/loss.h"
#include "core/kernels/reduce.h"
#include "gpu/recorder.h"
#include "tests/support/device.h"
#include "tests/support/ops.h"

using namespace isonorm;
using namespace isonorm::test;

namespace {

using Tensors = std::vector<Tensor>;
constexpr DType kFloating[] = {DType::f64, DType::f32, DType::bf16};

// Compares f(inputs), with sums of `length` terms, on the CPU and on a device.
template <class F> void compare(const Tensors& inputs, double length, F f) {
  Tensors moved;
  for (const Tensor& t : inputs) moved.push_back(to(t, kCuda));
  const Tensors here = f(inputs), there = f(moved);
  REQUIRE(here.size() == there.size());
  for (size_t i = 0; i < here.size(); ++i) {
    INFO("result " << i);
    CHECK(there[i].device() == kCuda);
    if (is_floating(here[i].dtype()))
      check_close(there[i], here[i],
                  4 * epsilon(here[i].dtype()) + 8 * epsilon(acc_dtype(here[i].dtype())) * std::sqrt(length));
    else
      CHECK(same_bytes(to(there[i], kCpu), here[i]));
  }
}

}  // namespace

TEST_CASE("norms of narrow and wide rows, of f32 and bf16 together too: in turn, rounded once") {
  Generator g{.seed = 8};
  struct Mixture {
    DType x, branch, gain, y;
  };
  constexpr DType f64 = DType::f64, f32 = DType::f32, bf16 = DType::bf16;
  for (const Mixture& m : {Mixture{f64, f64, f64, f64},
                           {f32, f32, f32, f32},
                           {bf16, bf16, bf16, bf16},
                           {f32, bf16, f32, bf16},
                           {f32, bf16, f32, f32},
                           {bf16, bf16, f32, bf16},
                           {bf16, bf16, bf16, f32}})
    for (const Dims& shape : {Dims{5, 64}, {6, 767}, {3, 1032}, {3, 2056}, {2, 8200}, {2, 9001}, {2100, 16}})
      for (NormKind kind : {NormKind::layer, NormKind::rms, NormKind::crms})
        for (bool affine : {false, true}) {
          INFO(
              text(m.x, ' ', m.branch, ' ', m.gain, ' ', m.y, ' ', shape, ' ', name_of(kind), affine ? " affine" : ""));
          const NormSpec spec{.kind = kind, .p = kind == NormKind::rms && affine ? 0.4 : 1};
          const auto leaf = [&](const Dims& s, DType dtype) { return randn(s, {}, g).to(dtype); };
          Tensors x = {leaf(shape, m.x), leaf(shape, m.branch), leaf(shape, m.y), leaf(shape, m.x)};
          if (affine) x.push_back(leaf({shape[1]}, m.gain)), x.push_back(leaf({shape[1]}, m.gain));
          // Both gradients of a row's gain are sums over rows as well.
          compare(x, static_cast<double>(shape[0] * shape[1]), [&](const Tensors& t) {
            Tensors in;
            for (size_t i : {0, 1, 4, 5})
              if (i < t.size()) in.push_back(require_grad(detach(t[i])));
            const gpu::Recorder recorder;
            const AddNorm r =
                affine ? add_norm(in[0], in[1], spec, in[2], in[3], m.y) : add_norm(in[0], in[1], spec, {}, {}, m.y);
            const Tensors d = grad(Tensors{r.normed, r.sum}, in, Tensors{t[2], t[3]});
            if (t[0].device() == kCuda && m.gain == f32)
              CHECK(recorder.count(gpu::Recorded::Kind::launch) == (affine ? 3 : 2));
            Tensors all = {r.sum, r.normed};
            all.insert(all.end(), d.begin(), d.end());
            return all;
          });
        }
}

// tests/autograd/norm_test.cpp derives the bound.
TEST_CASE("rows far from zero: a layer_norm gradient sums to 0 over a row, of a warp or a block") {
  Generator g{.seed = 9};
  for (const int64_t n : {8, 37, 767, 8200}) {
    INFO("width " << n);
    const Tensor x = require_grad(to(randn({5, n}, {DType::f64}, g) * 1e-3 + 50.0, kCuda));
    const Tensor dx = to(grad(layer_norm(x), {x}, to(randn({5, n}, {DType::f64}, g), kCuda))[0], kCpu);
    CHECK(amax(abs(sum(dx, {-1}))).item() <
          4 * epsilon(DType::f64) * std::sqrt(static_cast<double>(n)) * amax(abs(dx)).item());
  }
}

TEST_CASE("sums, extrema and means of long rows and columns") {
  Generator g{.seed = 9};
  const kernels::ReduceShape shapes[] = {{3, 64, 1},    {3, 65, 1},  {2, 301, 1},  {1, 40003, 1},
                                         {2, 32768, 1}, {2, 65, 40}, {2, 600, 33}, {1, 20000, 2}};
  for (DType dtype : kFloating)
    for (const auto& s : shapes) {
      INFO(text(dtype, ' ', Dims{s.outer, s.length, s.inner}));
      Tensor x = randn({s.outer, s.length, s.inner}, {}, g).to(dtype);
      const auto all = [&](const Tensors& t) {
        return Tensors{sum(t[0], {1}), amax(t[0], {1}), amin(t[0], {1}), argmax(t[0], 1), recentre(t[0], 1)};
      };
      compare({x}, static_cast<double>(s.length), all);
      if (dtype != DType::bf16) {  // the remaining mean comes from rounding the result, not x
        const Tensor centred = to(recentre(to(x + 1000, kCuda), 1), kCpu);
        CHECK(amax(abs(mean(centred.to(DType::f64), {1}))).item() <= 8 * epsilon(dtype));
      }
      // The first of equal elements; a NaN comes before all others.
      x = clamp(x, -1, 1);
      compare({x}, static_cast<double>(s.length), [](const Tensors& t) { return Tensors{argmax(t[0], 1)}; });
      fill(slice(x, 1, 40, 42), NAN);
      compare({x}, 1, [](const Tensors& t) { return Tensors{argmax(t[0], 1), isfinite(amax(t[0], {1}))}; });
    }
}

TEST_CASE("running sums are the CPU's, and of numbers from 0 on they never fall") {
  Generator g{.seed = 10};
  for (DType dtype : kFloating)
    for (const Dims& shape : {Dims{2, 64, 3}, Dims{2, 65, 3}, Dims{1, 9000, 1}, Dims{2, 200, 40}})
      for (bool reverse : {false, true}) {
        INFO(text(dtype, ' ', shape));
        const Tensor x = rand(shape, {}, g).to(dtype), y = empty_like(x), there = to(x, kCuda), z = empty_like(there);
        const kernels::ReduceShape s{shape[0], shape[1], shape[2]};
        kernels::cumsum.on(kCpu, s, y, x, reverse);
        kernels::cumsum.on(kCuda, s, z, there, reverse);
        CHECK(same_bytes(to(z, kCpu), y));
      }
}

TEST_CASE("softmax of narrow and wide rows") {
  Generator g{.seed = 11};
  for (DType dtype : kFloating)
    for (const Dims& shape : {Dims{6, 5}, Dims{5, 64}, Dims{3, 1032}, Dims{2, 8200}, Dims{2, 9001}})
      for (bool log : {false, true}) {
        INFO(text(dtype, ' ', shape, log ? " log" : ""));
        Tensor x = (randn(shape, {}, g) * 4).to(dtype), w = randn(shape, {}, g).to(dtype);
        fill(slice(slice(x, 0, 0, 1), 1, 1, 3), -std::numeric_limits<double>::infinity());
        compare({x, w}, static_cast<double>(shape[1]), [&](const Tensors& t) {
          const Tensor in = require_grad(detach(t[0])), y = log ? log_softmax(in, -1) : softmax(in, -1);
          return Tensors{exp(y), grad(y, {in}, t[1])[0]};
        });
      }
}

TEST_CASE("cross-entropy of narrow and wide rows, its gradient in place") {
  Generator g{.seed = 12};
  for (DType dtype : kFloating)
    for (const Dims& shape : {Dims{6, 7}, Dims{3, 4104}, Dims{3, 9001}, Dims{2, 104000 / size_of(dtype)}})
      for (double smoothing : {0.0, 0.1}) {
        INFO(text(dtype, ' ', shape, ' ', smoothing));
        const Tensor x = (randn(shape, {}, g) * 4).to(dtype), target = randint(3, shape[1], {shape[0]}, kCpu, g);
        const int64_t ignored = target.to_vector<int64_t>()[1];
        if (smoothing == 0) {  // impossible classes; some thread has no others
          fill(slice(x, 1, 0, 3), -std::numeric_limits<double>::infinity());
        }
        compare({x, target}, static_cast<double>(shape[1]), [&](const Tensors& t) {
          const DType acc = acc_dtype(dtype);
          const Tensor losses = empty({shape[0]}, {acc, t[0].device()}), stats = zeros({shape[0], 2}, losses.options()),
                       scale = empty({1}, losses.options()), total = empty({1}, t[0].options()), dx = empty_like(t[0]);
          const kernels::CrossEntropySpec spec{ignored, smoothing};
          const Device device = t[0].device();
          copy_into(dx, t[0]);
          kernels::cross_entropy.on(device, losses, stats, t[0], t[1], spec);
          kernels::cross_entropy_scale.on(device, scale, t[1], ignored, true);
          kernels::cross_entropy_total.on(device, total, losses, scale);
          kernels::cross_entropy_backward.on(device, dx, expand(scale, {shape[0]}), dx, t[1], stats, spec);
          const Tensor at_once = empty_like(losses), in_place = empty_like(t[0]);
          copy_into(in_place, t[0]);
          kernels::cross_entropy_and_gradient.on(device, at_once, in_place, expand(scale, {shape[0]}), in_place, t[1],
                                                 spec);
          return Tensors{losses, stats, scale, total, dx, at_once, in_place};
        });
      }
}

TEST_CASE("rows are added to positions in their order") {
  Generator g{.seed = 13};
  for (DType dtype : kFloating)
    for (const auto& [length, m, inner] :
         {std::array<int64_t, 3>{3, 1500, 8}, {300, 700, 16}, {70000, 1300, 1}, {5, 40, 3}})
      for (int64_t outer : {1, 2}) {
        if (outer * length > 100000) continue;
        INFO(text(dtype, ' ', Dims{outer, length, inner}, ' ', m));
        const kernels::IndexShape s{outer, length, inner};
        const Tensor x = randn({outer, m, inner}, {}, g).to(dtype), ids = randint(0, length, {m}, kCpu, g);
        const Tensor dx = empty({outer, length, inner}, {acc_dtype(dtype), kCpu}), there = empty_like(to(dx, kCuda));
        kernels::add_rows.on(kCpu, s, dx, x, ids);
        kernels::add_rows.on(kCuda, s, there, to(x, kCuda), to(ids, kCuda));
        CHECK(same_bytes(to(there, kCpu), dx));
        if (inner == 1) {
          kernels::gather_backward.on(kCuda, s, there, to(x, kCuda), to(ids, kCuda));
          CHECK(same_bytes(to(there, kCpu), dx));
        }
      }
}

TEST_CASE("the largest of a row, sorted or chosen one by one") {
  Generator g{.seed = 14};
  for (DType dtype : kFloating)
    for (const auto& [n, k] : {std::pair<int64_t, int64_t>{1, 1}, {5, 5}, {1000, 1000}, {1024, 7}, {1500, 12}}) {
      INFO(text(dtype, ' ', n, ' ', k));
      const Tensor x = randn({3, n}, {}, g).to(dtype);
      if (n > 40) fill(slice(x, 1, 30, 33), NAN);
      if (n > 5) fill(slice(x, 1, 2, 5), 1e3);
      compare({x}, 1, [k = k](const Tensors& t) {
        const Tensor index = empty({3, k}, {DType::i64, t[0].device()});
        kernels::topk.on(t[0].device(), index, t[0]);
        return Tensors{index};
      });
    }
}
