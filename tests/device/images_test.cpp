// Convolution, pooling and norms over positions on a device compared with the CPU: sizes that the rows of
// tests/op_cases do not reach, and a model with every norm.
#include "autograd/fused/group_norm.h"
#include "autograd/ops/images.h"
#include "gpu/steps/captured.h"
#include "lab/papers/images/conv_pool.h"
#include "optim/sgd.h"
#include "tests/support/device.h"
#include "tests/support/ops.h"

using namespace isonorm;
using namespace isonorm::papers;
using test::kCuda;

namespace {

// Gradients of sum(f(inputs) * numbers) for the inputs, copied to the CPU.
template <class F> std::vector<Tensor> gradients(const std::vector<Tensor>& values, Device device, const F& f) {
  std::vector<Tensor> inputs;
  for (const Tensor& v : values) inputs.push_back(require_grad(detach(to(v, device))));
  const Tensor y = f(inputs);
  Generator g{.seed = 9};
  backward(sum(y * to(randn(y.shape(), {y.dtype()}, g), device)));
  std::vector<Tensor> out;
  for (const Tensor& x : inputs) out.push_back(to(x.grad(), kCpu));
  return out;
}

template <class F>
void check_gradients(const char* what, const std::vector<Tensor>& values, double tolerance, const F& f) {
  const std::vector<Tensor> host = gradients(values, kCpu, f), device = gradients(values, kCuda, f);
  for (size_t i = 0; i < host.size(); ++i) {
    INFO(what << ", gradient " << i);
    check_close(device[i], host[i], tolerance);
  }
}

Tensor normal(const Dims& shape, uint64_t seed) {
  Generator g{.seed = seed};
  return randn(shape, {DType::f64}, g);
}

}  // namespace

TEST_CASE("gradients of norms over many positions equal the CPU's") {
  // 600 rows: three pieces on a device. Sums of 600 products, and 16 for the operations on them.
  const double tolerance = 16 * std::sqrt(600.0) * 0x1p-52;
  const std::vector<Tensor> in = {normal({2, 20, 15, 6}, 1), normal({6}, 2), normal({6}, 3)};
  check_gradients("batch", in, tolerance, [](const auto& t) { return batch_norm(t[0], t[1], t[2]); });
  const std::vector<Tensor> many = {normal({1, 40, 15, 6}, 1), normal({6}, 2), normal({6}, 3)};
  for (const GroupNormOptions& o : {GroupNormOptions{}, GroupNormOptions{.kind = NormKind::rms, .p = 0.6},
                                    GroupNormOptions{.kind = NormKind::rms, .eps_outside = true}})
    check_gradients("group", many, tolerance, [&](const auto& t) { return group_norm(t[0], 3, t[1], t[2], o); });
}

TEST_CASE("gradients of convolutions equal the CPU's, in packs and without") {
  for (const int64_t channels : {4, 6})
    for (const int64_t groups : {1, 2}) {
      const std::vector<Tensor> in = {normal({2, 7, 6, channels}, 1), normal({4, 3, 3, channels / groups}, 2),
                                      normal({4}, 3)};
      check_gradients("conv2d", in, 16 * std::sqrt(84.0) * 0x1p-52, [&](const auto& t) {
        return conv2d(t[0], t[1], t[2], {.stride = {2, 1}, .padding = 1, .groups = groups});
      });
    }
}

TEST_CASE("resizing and transposed convolution are captured with their gradients: nothing comes from the host") {
  const Tensor x = normal({2, 3, 4, 2}, 1), w = normal({2, 3, 3, 2}, 2);
  const auto f = [](const Tensor& x, const Tensor& w) {
    const Tensor y = conv_transpose2d(x, w, {}, {.stride = 2, .padding = 1});
    const Tensor z = interpolate(y, {.scale_factor = 1.5, .mode = Interpolation::bilinear});
    return sum(square(adaptive_avg_pool2d(interpolate(z, {.size = 8}), 5)));
  };
  const Tensor on_host = require_grad(detach(x)), on_device = require_grad(to(x, kCuda)), weight = to(w, kCuda);
  const Tensor expected = grad(f(on_host, w), {on_host})[0];
  Tensor found;
  gpu::Captured step(kCuda, [&] { found = grad(f(on_device, weight), {on_device})[0]; });
  for (int i = 0; i < 5; ++i) {
    step();
    check_close(to(found, kCpu), expected, 16 * std::sqrt(18.0) * 0x1p-52);
  }
  CHECK(step.replays());
}

TEST_CASE("a convolutional network with every norm trains on a device as on the CPU") {
  for (const ConvNorm norm : kConvNorms) {
    INFO(name_of(norm));
    const auto trained = [&](Device device) {
      manual_seed(3);
      ConvPoolCnn model({.image = 16, .channels = 1, .classes = 10, .width = 2, .norm = norm});
      model.to(DType::f64);
      Generator g{.seed = 5};
      const Tensor images = randn({2, 16, 16, 1}, {DType::f64}, g), labels = randint(0, 10, {2}, kCpu, g);
      model.initialise(images);
      model.to(device);
      optim::Sgd sgd(model.parameters(), {.lr = 0.01});
      manual_seed(7);
      const Tensor loss = cross_entropy(model(to(images, device)), to(labels, device));
      backward(loss);
      sgd.step();
      model.to(kCpu);
      TensorMap state = model.state_dict();
      state.add("loss", to(detach(loss), kCpu));
      return state;
    };
    const TensorMap host = trained(kCpu), device = trained(kCuda);
    CHECK(host.size() == device.size());
    for (const auto& [name, tensor] : host) {
      INFO(name);
      // Ten consecutive layers. Some norms are over two entries and may divide by a hundredth of their input.
      check_close(device.at(name), tensor, 100 * 10 * 64 * 0x1p-52);
    }
  }
}
