// CPU time of compare_gradients compared with the gradients that it needs. Printed, not judged, since a loaded machine
// must not fail a test. compare_engine_test.cpp counts the calls of the loss.
#include <algorithm>
#include <ctime>

#include "autograd/ops/pointwise.h"
#include "equivalence/compare/compare.h"
#include "nn/attention.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "tests/equivalence/room.h"

namespace {

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

Tensor activated(const Tensor& x, bool composed) { return composed ? x * sigmoid(x) : silu(x); }

struct Perceptron : nn::Module {
  bool composed;
  nn::Linear& first = add("first", nn::Linear(256, 768));
  nn::Linear& second = add("second", nn::Linear(768, 512));
  nn::Linear& head = add("head", nn::Linear(512, 10));
  explicit Perceptron(bool is_composed) : composed(is_composed) {}
  Tensor forward(const Tensor& x) override { return head(relu(second(activated(first(x), composed)))); }
};
template <int64_t examples> Examples images(int64_t point, DType dtype) {
  Generator g{7, static_cast<uint64_t>(point) << 20};
  return {randn({examples, 256}, {DType::f64}, g).to(dtype), randint(0, 10, {examples}, kCpu, g)};
}

struct Block : nn::Module {
  bool composed;
  nn::LayerNorm& norm1 = add("norm1", nn::LayerNorm(128));
  nn::MultiheadAttention& attention = add("attention", nn::MultiheadAttention(128, {.heads = 4}));
  nn::LayerNorm& norm2 = add("norm2", nn::LayerNorm(128));
  nn::Linear& up = add("up", nn::Linear(128, 512));
  nn::Linear& down = add("down", nn::Linear(512, 128));
  explicit Block(bool is_composed) : composed(is_composed) {}
  Tensor forward(const Tensor& x) override {
    const Tensor h = x + attention(norm1(x));
    return h + down(activated(up(norm2(h)), composed));
  }
};
struct Transformer : nn::Module {
  nn::Embedding& table = add("table", nn::Embedding(200, 128));
  Block &block1, &block2, &block3;
  nn::Linear& head = add("head", nn::Linear(128, 200));
  explicit Transformer(bool composed)
      : block1(add("block1", Block(composed))),
        block2(add("block2", Block(composed))),
        block3(add("block3", Block(composed))) {}
  Tensor forward(const Tensor& ids) override { return head(block3(block2(block1(table(ids))))); }
};
Examples texts(int64_t point, DType) {
  Generator g{7, static_cast<uint64_t>(point) << 20};
  const Tensor ids = randint(0, 200, {16, 32}, kCpu, g);
  return {ids, randint(0, 200, {16, 32}, kCpu, g)};
}

template <class M> void measure(const char* name, DType dtype, Examples (*batch)(int64_t, DType)) {
  M a(false), b(true);
  a.to(dtype), b.to(dtype);
  const auto gradients = [&] {
    for (int64_t point = 0; point < 5; ++point)
      for (nn::Module* m : std::initializer_list<nn::Module*>{&a, &a, &a, &a, &a, &b}) {
        m->zero_grad();
        cross_entropy_of(*m, batch(point, dtype)).backward();
      }
  };
  const auto comparison = [&] {
    const Comparison c =
        compare_gradients(a, b, {}, cross_entropy_of, [&](int64_t point) { return batch(point, dtype); });
    INFO(c.sentence());
    CHECK(c.equivalent());
  };
  std::vector<double> needed, taken;
  const auto time = [](std::vector<double>& to, const auto& f) {
    const double begin = processor_seconds();
    f();
    to.push_back(processor_seconds() - begin);
  };
  gradients();
  for (int i = 0; i < 3; ++i) time(needed, gradients), time(taken, comparison);
  std::ranges::sort(needed), std::ranges::sort(taken);
  std::printf("%-20s %s: %.2f s for 30 gradients, %.2f s for the comparison, %.2f times as much\n", name,
              name_of(dtype), needed[1], taken[1], taken[1] / needed[1]);
}

}  // namespace

TEST_CASE("seconds: a comparison of 600,000 parameters against the time of its gradients", "[.seconds]") {
  manual_seed(1);
  for (const DType dtype : {DType::f64, DType::f32}) {
    measure<Perceptron>("perceptron, 32 rows", dtype, images<32>);
    measure<Perceptron>("perceptron, 256 rows", dtype, images<256>);
    measure<Transformer>("Transformer, 512 ids", dtype, texts);
  }
}
