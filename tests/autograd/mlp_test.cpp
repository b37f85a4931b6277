// The fused feed-forward block in bf16 has the bits of linear, gelu and linear in turn, if the machine multiplies bf16.
#include "autograd/fused/mlp.h"

#include "core/kernels/matmul.h"
#include "tests/support/threads.h"
#include "tests/autograd/room.h"

using Values = std::vector<float>;

namespace {

struct Sizes {
  int64_t rows, in, hidden, out;
};
// Around the blocks of the products: odd sizes, rows by 6 and 132, registers of 16, depths of 1024.
const Sizes kSizes[] = {{1, 1, 1, 1},      {3, 4, 5, 2},     {7, 17, 33, 9},     {13, 16, 64, 16},
                        {140, 31, 97, 65}, {300, 70, 35, 3}, {19, 1026, 40, 30}, {23, 34, 2080, 18}};

// The result, then the gradients of the weights and biases, and of x unless `frozen`.
std::vector<Values> run(const Sizes& s, DType masters, GeluForm form, bool bias, bool frozen) {
  const auto make = [&](const Dims& shape, uint64_t seed, double size, DType dtype) {
    return require_grad(test::randn(shape, seed, 0, size, dtype));
  };
  const double first = 1 / std::sqrt(static_cast<double>(s.in)), second = 1 / std::sqrt(static_cast<double>(s.hidden));
  const Tensor x = test::randn({s.rows, s.in}, 1, 0, 1, DType::bf16);
  std::vector<Tensor> leaves = {make({s.hidden, s.in}, 2, first, masters), make({s.out, s.hidden}, 3, second, masters)};
  if (bias) leaves.insert(leaves.end(), {make({s.hidden}, 4, 1, masters), make({s.out}, 5, 1, masters)});
  if (!frozen) leaves.push_back(require_grad(x));
  const Tensor y = mlp(x, leaves[0], bias ? leaves[2] : Tensor(), leaves[1], bias ? leaves[3] : Tensor(), form);
  const Tensor dy = test::randn({s.rows, s.out}, 6, 0, 1, DType::bf16), loss = sum(mul(y, dy));
  std::vector<Values> all = {y.to_vector<float>()};
  for (const Tensor& g : grad({&loss, 1}, leaves)) all.push_back(g.to_vector<float>());
  return all;
}

}  // namespace

TEST_CASE("the fused MLP of bf16 has the bits of its composition, for any number of threads") {
  for (const Sizes& s : kSizes)
    for (const GeluForm form : {GeluForm::erf, GeluForm::tanh})
      for (const DType masters : {DType::bf16, DType::f32})
        for (const bool bias : {false, true}) {
          INFO(s.rows << " x " << s.in << ", hidden " << s.hidden << ", out " << s.out << ", weights "
                      << name_of(masters) << (bias ? ", biased" : "") << (form == GeluForm::tanh ? ", tanh" : ""));
          const bool frozen = bias && masters == DType::f32;
          const std::vector<Values> found = run(s, masters, form, bias, frozen);
          const UseReference guard;
          const std::vector<Values> want = run(s, masters, form, bias, frozen);
          for (size_t i = 0; i < want.size(); ++i) {
            INFO("tensor " << i);
            CHECK((found[i] == want[i]));
          }
        }
  for (const int threads : {2, 5}) {
    const test::Threads one(1);
    const std::vector<Values> want = run(kSizes[5], DType::f32, GeluForm::erf, true, false);
    const test::Threads more(threads);
    CHECK((run(kSizes[5], DType::f32, GeluForm::erf, true, false) == want));
  }
}

TEST_CASE("the fused MLP of bf16 gives the same result with and without gradients") {
  const auto make = [](const Dims& shape, uint64_t seed) { return test::randn(shape, seed, 0, 1, DType::bf16); };
  const Tensor x = make({37, 33}, 1), w1 = make({1100, 33}, 2), w2 = make({21, 1100}, 3);
  const Tensor with = mlp(require_grad(x), w1, {}, w2, {});
  const NoGrad no_grad;
  CHECK((mlp(x, w1, {}, w2, {}).to_vector<float>() == with.to_vector<float>()));
}
