// Initial weights: bounds and standard deviations by the shape of the weight.
#include "nn/init.h"

#include "nn/conv.h"
#include "nn/recurrent/recurrent.h"
#include "tests/nn/models.h"

using namespace isonorm;
using namespace isonorm::nn;

namespace {

const Dims kShape = {100, 400};  // [out, in]

// For 40000 normal entries the relative standard error is 0.0035.
double spread(const Tensor& x) { return std::sqrt(var(x).item()); }

}  // namespace

TEST_CASE("Xavier's bound and spread follow from inputs and outputs, Kaiming's from the inputs") {
  manual_seed(1);
  const double bound = 2 * std::sqrt(6.0 / 500);
  const Tensor uniform = init::xavier_uniform(kShape, 2);
  CHECK(largest(uniform) <= bound);
  CHECK(largest(uniform) > 0.999 * bound);
  CHECK(spread(init::xavier_normal(kShape, 2)) == Approx(2 * std::sqrt(2.0 / 500)).epsilon(0.02));
  CHECK(spread(init::kaiming_normal(kShape)) == Approx(std::sqrt(2.0 / 400)).epsilon(0.02));
  CHECK_THROWS_WITH(init::xavier_normal({3}), Catch::Matchers::Contains("[3] is not [out, in]"));
}

TEST_CASE("orthogonal weights have orthonormal rows or columns") {
  manual_seed(3);
  for (const Dims& shape : {Dims{1, 1}, Dims{40, 40}, Dims{7, 40}, Dims{40, 7}}) {
    const Tensor w = init::orthogonal(shape).to(DType::f64);
    CHECK(w.shape() == shape);
    const bool wide = shape[0] <= shape[1];
    const Tensor products = wide ? matmul(w, transpose(w, 0, 1)) : matmul(transpose(w, 0, 1), w);
    // Sums of 40 products of numbers rounded to f32.
    CHECK(largest(products - eye(std::min(shape[0], shape[1]), -1, {DType::f64})) <= 2 * 0x1p-24 * std::sqrt(40));
  }
  // The first row is uniform over directions, like a normal vector divided by its length.
  const Tensor first = detached::narrow(init::orthogonal({400, 400}), 0, 0, 1);
  CHECK(std::abs(sum(first).item()) < 5);  // the standard deviation is 1
  CHECK_THROWS_WITH(init::orthogonal({3}), Catch::Matchers::Contains("[3] is not [out, in]"));
}

TEST_CASE("layers begin with PyTorch's values") {
  manual_seed(4);
  const auto is_uniform = [](const Tensor& x, double bound) {
    CHECK(largest(x) <= bound);
    CHECK(largest(x) > 0.9 * bound);
    CHECK(std::abs(mean(x).item()) < 5 * bound / std::sqrt(3.0 * static_cast<double>(x.numel())));
  };
  const Linear linear(100, 400);
  is_uniform(linear.weight, 0.1);
  is_uniform(linear.bias, 0.1);
  const Embedding table(100, 400);
  CHECK(spread(table.weight) == Approx(1).epsilon(0.02));
  CHECK(std::abs(mean(table.weight).item()) < 5.0 / 200);
  const Conv2d conv(4, 300, 5);
  is_uniform(conv.weight, 0.1);
  is_uniform(conv.bias, 0.1);
  for (const NamedParameter& p : Gru({.inputs = 30, .hidden = 100}).named_parameters()) is_uniform(p.tensor, 0.1);
  for (const NamedParameter& p : Lstm({.inputs = 30, .hidden = 100}).named_parameters()) is_uniform(p.tensor, 0.1);
}

TEST_CASE("recurrent layers begin with the initial values of 1910.07467 if requested") {
  manual_seed(5);
  for (const int64_t inputs : {30, 100})
    for (const NormKind norm : {NormKind::none, NormKind::layer, NormKind::rms})
      for (const bool lstm : {false, true}) {
        const RecurrentOptions o{
            .inputs = inputs, .hidden = 100, .norm = norm, .initialisation = RecurrentInitialisation::orthogonal};
        const std::vector<NamedParameter> all = lstm ? Lstm(o).named_parameters() : Gru(o).named_parameters();
        int matrices = 0;
        for (const NamedParameter& p : all) {
          INFO(p.name << " of " << inputs << " inputs, " << name_of(norm));
          if (p.name.ends_with("bias")) CHECK(largest(p.tensor) == 0);
          if (p.tensor.rank() != 2) continue;
          for (int64_t row = 0; row < p.tensor.size(0); row += 100, ++matrices) {
            const Tensor gate = detached::narrow(p.tensor, 0, row, 100).to(DType::f64);
            if (gate.size(1) == 100)
              CHECK(largest(matmul(gate, transpose(gate, 0, 1)) - eye(100, -1, {DType::f64})) <= 2 * 0x1p-24 * 10);
            else
              CHECK(spread(gate) == Approx(0.01).epsilon(0.1));
          }
        }
        CHECK(matrices == (lstm ? 8 : 6));
      }
}

TEST_CASE("a truncated normal initialisation ends at two deviations") {
  manual_seed(2);
  const Tensor x = init::truncated_normal(kShape, 0.02);
  CHECK(largest(x) <= 0.04);
  CHECK(largest(x) > 0.0399);
  CHECK(spread(x) == Approx(0.02 * 0.8796).epsilon(0.02));  // sqrt(1 - 2 a phi(a) / (2 Phi(a) - 1)), a = 2
}
