// Second derivatives of ops whose rules are kernels: values of PyTorch 2, and a gradient penalty of a small model. Each
// op is compared with finite differences in tests/ops_test.cpp.
#include "autograd/fused/group_norm.h"
#include "autograd/fused/recurrent.h"
#include "autograd/ops/images.h"
#include "tests/autograd/room.h"

namespace {

using List = std::vector<Tensor>;

Tensor entries_from(const Dims& shape, double start = 0) {
  const Tensor x = arange(start, start + static_cast<double>(numel(shape, "entries")) - 0.5, 1, {DType::f64});
  return sin(x * 2.3 + 0.3).reshape(shape);
}

// The sum of the squared gradients of f, a single number.
Tensor penalty(const TensorFunction& f, const List& x) {
  Tensor sum_of_squares = zeros({}, {DType::f64});
  for (const Tensor& slope : grad(List{f(x)}, x, {}, {.create_graph = true}))
    sum_of_squares = sum_of_squares + sum(square(slope));
  return sum_of_squares;
}

// Checks the first entries of the penalty's gradient by each input. Both libraries add a few hundred terms in f64, and
// the norms enlarge rounding by 1 / spread: 1e-11 of the largest entry.
void check_penalty(const char* name, const TensorFunction& f, List x,
                   const std::vector<std::vector<double>>& expected) {
  INFO(name);
  for (Tensor& t : x) t = detach(t).require_grad();
  const List slopes = grad(List{penalty(f, x)}, x);
  REQUIRE(slopes.size() == expected.size());
  for (size_t i = 0; i < slopes.size(); ++i) {
    const std::vector<double> found = slopes[i].to_vector<double>();
    double largest = 0;
    for (double v : found) largest = std::max(largest, std::abs(v));
    for (size_t k = 0; k < expected[i].size(); ++k) {
      INFO("input " << i << " entry " << k << ": " << found[k] << ", PyTorch " << expected[i][k]);
      CHECK(std::abs(found[k] - expected[i][k]) <= 1e-11 * largest);
    }
  }
}

}  // namespace

TEST_CASE("second derivatives of convolution, pooling, norms and attention are PyTorch's") {
  check_penalty("conv2d",
                [](const List& x) { return sum(tanh(conv2d(x[0], x[1], x[2], {.stride = 2, .padding = 1}))); },
                {entries_from({1, 4, 5, 2}), entries_from({2, 3, 2, 2}), entries_from({2})},
                {{-0.3885466491028493, -0.46602505126514515, -0.0034443146336045312, -0.15578592190194354},
                 {-0.005485524315881012, 0.007905381688420112, -0.023385887750456434, 0.017164003919706294},
                 {0.3293311319800662, 22.97206256077491}});
  check_penalty("conv2d by groups",
                [](const List& x) { return sum(tanh(conv2d(x[0], x[1], x[2], {.dilation = 2, .groups = 2}))); },
                {entries_from({1, 4, 5, 4}), entries_from({2, 2, 2, 2}), entries_from({2})},
                {{-1.7484803609239548, -3.392938321629295, 0.00047462057479510456, -0.0009661318554069508},
                 {-1.7698266731879078, -5.83881049519605, 1.426482941199658, -8.612281476826421},
                 {-2.8873514687966524, -3.5777057295420747}});
  check_penalty("max_pool2d", [](const List& x) { return sum(exp(max_pool2d(x[0], 2, {.stride = 1}))); },
                {entries_from({1, 3, 3, 1})}, {{0.0, 5.6077519887152985, 0.0, 9.781402789383286}});
  check_penalty("avg_pool2d", [](const List& x) { return sum(exp(avg_pool2d(x[0], 2, {.stride = 2, .padding = 1}))); },
                {entries_from({1, 3, 3, 1})},
                {{0.03622608645136392, 0.04948605616924322, 0.04948605616924322, 0.15318635443025366}});
  check_penalty("layer_norm", [](const List& x) { return sum(exp(layer_norm(x[0], x[1], x[2]))); },
                {entries_from({2, 4}), entries_from({4}), entries_from({4})},
                {{-31.998584418295003, -49.198929407556, 22.719862458642808, 58.477651367208225},
                 {-3.441739101510359, -6.440538725812997, -40.307976512464144, 113.64078521097335},
                 {14.268870348064468, 17.72662865409758, 24.823090585299568, 110.83996990436997}});
  check_penalty("layer_norm without gain", [](const List& x) { return sum(exp(layer_norm(x[0]))); },
                {entries_from({2, 4})},
                {{-1.7464554959028833, -2.1218520352827164, 1.5684098710911116, 2.299897660094487}});
  check_penalty("batch_norm", [](const List& x) { return sum(exp(batch_norm(x[0], x[1], x[2]))); },
                {entries_from({4, 3}), entries_from({3}), entries_from({3})},
                {{0.9016920722089075, 9.980863077517272, -4.556273369130194, -1.9349236173020539},
                 {29.002112719173063, 134.539875803748, -15.398219221056204},
                 {66.70434546423337, 148.7978053059937, 15.549782965304612}});
  check_penalty(
      "attention",
      [](const List& x) { return sum(exp(scaled_dot_product_attention(x[0], x[1], x[2], {.causal = true}))); },
      {entries_from({1, 2, 3, 2}), entries_from({1, 2, 3, 2}, 1), entries_from({1, 2, 3, 2}, 2)},
      {{0.0, 0.0, -0.5347122200705838, -1.4556824477519692},
       {-1.7602456948539587, -0.03548685915375134, 1.7068272348689284, -0.5022508291920115},
       {1.7386301413005711, 17.403058720332528, 0.7159074774017886, 3.133627338987211}});
}

TEST_CASE("second derivatives of a GRU's step, an MLP and a product with zeros are PyTorch's") {
  check_penalty(
      "gru_step",
      [](const List& x) { return sum(exp(gru_step(linear(x[0], x[2], x[4]), linear(x[1], x[3], x[5]), x[1]))); },
      {entries_from({2, 3}), entries_from({2, 2}), entries_from({6, 3}), entries_from({6, 2}), entries_from({6}),
       entries_from({6}, 1)},
      {{1.2385332258077137, -1.5460012020688583, 0.8215938338088112, -0.7595028936411103},
       {0.4018867087960629, 2.487866173959004, 3.2513948924739413, 7.595135422747636},
       {0.08644854949656454, -0.014605823745508159, -0.06698552923122142, -0.8594722515576173},
       {-0.11604490370007126, 0.09393172903148882, 1.0833417014793782, -0.38950474085618747},
       {0.10646904847511458, -0.9968992052352589, -0.8899320327198538, -1.4491165994084971},
       {0.10646904847511458, -0.9968992052352589, -0.8899320327198538, -1.4491165994084971}});
  check_penalty(
      "mlp", [](const List& x) { return sum(exp(mlp(x[0], x[1], x[2], x[3], x[4]))); },
      {entries_from({2, 3}), entries_from({4, 3}), entries_from({4}), entries_from({2, 4}), entries_from({2})},
      {{1495.819572791756, -461.8792748659396, -880.3414016531804, 2924.6709241220506},
       {1161.4392171780553, 150.93236228978975, -1362.5644448356672, 1826.8193445306324},
       {1711.7762006464122, 2689.8133742660566, -1104.84937588978, 3096.7560195607466},
       {4388.317440645991, 5748.515670867339, -188.77845709097141, 3479.080656455357},
       {3382.536275342314, -43.05064744736091}});
  check_penalty("prod", [](const List& x) { return sum(exp(prod(x[0], {1}))); },
                {tensor({{0.5, 0.0, 2.0}, {0.0, 0.0, 3.0}})}, {{4.0, 2.0, 1.0, 0.0}});
}

TEST_CASE("the gradient of a gradient penalty of convolution, norm and attention agrees with finite differences") {
  const TensorFunction model = [](const List& x) {
    const Tensor h = relu(conv2d(x[0], x[1], {}, {.padding = 1}) + 3.0);
    const Tensor rows = group_norm(avg_pool2d(h, 2), 2, x[2]).reshape({1, 4, 6});
    return sum(square(packed_attention(rms_norm(rows), 1)));
  };
  const GradcheckResult r = gradcheck(
      [&](const List& in) {
        const Recording recording;  // gradcheck() evaluates under NoGrad
        List x;
        for (const Tensor& t : in) x.push_back(requires_grad(t) ? t : require_grad(detach(t)));
        return penalty(model, x);
      },
      {entries_from({1, 4, 4, 2}), entries_from({6, 3, 3, 2}), entries_from({6}, 5)}, {.tolerance = 1e-6});
  INFO(r.message());
  CHECK(r.ok);
}

TEST_CASE("group_norm with eps outside of the root has zero gradients for a group of zeros, recorded or not") {
  const Tensor x = zeros({1, 3, 2}, {DType::f64}).require_grad();
  const Tensor y = sum(square(group_norm(x, 1, {}, {}, {.kind = NormKind::rms, .eps = 0.1, .eps_outside = true})));
  CHECK(grad(y, {x}, {}, {.create_graph = true})[0].to_vector<double>() == std::vector<double>(6));
}
