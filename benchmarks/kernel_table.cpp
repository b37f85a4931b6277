#include "benchmarks/kernel_table.h"

#include <cstring>
#include <string>
#include <vector>

#include "benchmarks/measure.h"
#include "core/formulas/round_up.h"
#include "isonorm.h"

namespace isonorm::bench {
namespace {

constexpr int64_t kHeads = 4, kHeadSize = 64;

Tensor normal(const Dims& shape, TensorOptions like) { return randn(shape, like); }
Tensor leaf(const Dims& shape, TensorOptions like) { return require_grad(normal(shape, like)); }

constexpr int kQueued = 8;  // runs queued on a device before a wait, so that start and wait count little

int at_once(Device device) { return device == kCpu ? 1 : kQueued; }

// Milliseconds per call of f, for n calls, including the device's work.
template <class F> double each_of(int n, Device device, const F& f) {
  if (device != kCpu) gpu::synchronize(device);
  return milliseconds([&] {
           for (int i = 0; i < n; ++i) f(i);
           if (device != kCpu) gpu::synchronize(device);
         }) /
         n;
}

// outputs() is the forward pass. The backward pass gets normal cotangents and computes every input's gradient.
Run differentiable(std::vector<Tensor> inputs, std::function<std::vector<Tensor>()> outputs) {
  std::vector<Tensor> cotangents;
  for (const Tensor& y : outputs()) cotangents.push_back(normal(y.shape(), y.options()));
  return [=] {
    const Device device = inputs[0].device();
    const int n = at_once(device);
    std::vector<std::vector<Tensor>> results(static_cast<size_t>(n));
    std::vector<Tensor> gradients;
    Times times;
    times.forward_ms = each_of(n, device, [&](int i) { results[static_cast<size_t>(i)] = outputs(); });
    times.backward_ms =
        each_of(n, device, [&](int i) { gradients = grad(results[static_cast<size_t>(i)], inputs, cotangents); });
    return times;
  };
}

template <NormKind kind> Run add_norm_of(int64_t rows, int64_t width, TensorOptions like) {
  const Tensor x = leaf({rows, width}, like), branch = leaf({rows, width}, like), gain = leaf({width}, like);
  const Tensor bias = kind == NormKind::layer ? leaf({width}, like) : Tensor{};
  std::vector<Tensor> inputs{x, branch, gain};
  if (bias.defined()) inputs.push_back(bias);
  return differentiable(inputs, [=] {
    const AddNorm y = add_norm(x, branch, {.kind = kind}, gain, bias);
    return std::vector<Tensor>{y.sum, y.normed};
  });
}

Run layer_norm_of(int64_t rows, int64_t width, TensorOptions like) {
  const Tensor x = leaf({rows, width}, like), gain = leaf({width}, like), bias = leaf({width}, like);
  return differentiable({x, gain, bias}, [=] { return std::vector<Tensor>{layer_norm(x, gain, bias)}; });
}

Run rms_norm_of(int64_t rows, int64_t width, TensorOptions like) {
  const Tensor x = leaf({rows, width}, like), gain = leaf({width}, like);
  return differentiable({x, gain}, [=] { return std::vector<Tensor>{rms_norm(x, gain)}; });
}

Run softmax_of(int64_t rows, int64_t width, TensorOptions like) {
  const Tensor x = leaf({rows, width}, like);
  return differentiable({x}, [=] { return std::vector<Tensor>{softmax(x)}; });
}

Run gelu_of(int64_t rows, int64_t width, TensorOptions like) {
  const Tensor x = leaf({rows, width}, like);
  return differentiable({x}, [=] { return std::vector<Tensor>{gelu(x)}; });
}

Run mlp_of(int64_t rows, int64_t width, TensorOptions like) {
  const Tensor x = leaf({rows, width}, like), w1 = leaf({4 * width, width}, like), b1 = leaf({4 * width}, like);
  const Tensor w2 = leaf({width, 4 * width}, like), b2 = leaf({width}, like);
  return differentiable({x, w1, b1, w2, b2}, [=] { return std::vector<Tensor>{mlp(x, w1, b1, w2, b2)}; });
}

Run cross_entropy_of(int64_t rows, int64_t width, TensorOptions like) {
  const Tensor x = leaf({rows, width}, like), target = randint(0, width, {rows}, like.device);
  return differentiable({x}, [=] { return std::vector<Tensor>{cross_entropy(x, target)}; });
}

Run linear_of(int64_t rows, int64_t width, TensorOptions like) {
  const Tensor x = leaf({rows, width}, like), weight = leaf({width, width}, like), bias = leaf({width}, like);
  return differentiable({x, weight, bias}, [=] { return std::vector<Tensor>{linear(x, weight, bias)}; });
}

Run attention_of(int64_t batch, int64_t length, TensorOptions like) {
  const Tensor qkv = leaf({batch, length, 3 * kHeads * kHeadSize}, like);
  return differentiable({qkv}, [=] { return std::vector<Tensor>{packed_attention(qkv, kHeads)}; });
}

constexpr int64_t kSide = 16;  // side of an image

// 3 x 3 filters with the same number of channels in and out; or, on images with `colours` channels, without the input's
// gradient.
template <int64_t side, int64_t stride = 1, int64_t colours = 0>
Run conv2d_of(int64_t images, int64_t width, TensorOptions like) {
  const int64_t in = colours > 0 ? colours : width;
  const Tensor x = normal({images, side, side, in}, like), weight = leaf({width, 3, 3, in}, like);
  const Tensor bias = leaf({width}, like);
  std::vector<Tensor> inputs{weight, bias};
  if (colours == 0) inputs.push_back(require_grad(x));
  return differentiable(inputs,
                        [=] { return std::vector<Tensor>{conv2d(x, weight, bias, {.stride = stride, .padding = 1})}; });
}

Run max_pool2d_of(int64_t images, int64_t width, TensorOptions like) {
  const Tensor x = leaf({images, kSide, kSide, width}, like);
  return differentiable({x}, [=] { return std::vector<Tensor>{max_pool2d(x, 2)}; });
}

// One step for a batch of `rows`, with hidden size `width`.
Run gru_step_of(int64_t rows, int64_t width, TensorOptions like) {
  const Tensor a = leaf({rows, 3 * width}, like), u = leaf({rows, 3 * width}, like), h = leaf({rows, width}, like);
  return differentiable({a, u, h}, [=] { return std::vector<Tensor>{gru_step(a, u, h)}; });
}

Run lstm_step_of(int64_t rows, int64_t width, TensorOptions like) {
  const Tensor a = leaf({rows, 4 * width}, like), u = leaf({rows, 4 * width}, like), c = leaf({rows, width}, like);
  return differentiable({a, u, c}, [=] {
    const LstmStep y = lstm_step(a, u, c);
    return std::vector<Tensor>{y.output, y.cell};
  });
}

// A layer with RMSNorm over 16 steps.
template <class Layer> Run recurrent_of(int64_t rows, int64_t width, TensorOptions like) {
  const auto layer =
      std::make_shared<Layer>(nn::RecurrentOptions{.inputs = width, .hidden = width, .norm = NormKind::rms});
  layer->to(like.dtype);
  layer->to(like.device);
  const Tensor x = leaf({rows, 16, width}, like);
  std::vector<Tensor> inputs = layer->parameters();
  inputs.push_back(x);
  return differentiable(inputs, [=] { return std::vector<Tensor>{(*layer)(x).output}; });
}

// `count` weights and `count` biases. Only the optimizer step is timed.
Run adamw_of(int64_t count, int64_t width, TensorOptions like) {
  std::vector<Tensor> parameters;
  for (int64_t i = 0; i < count; ++i) {
    parameters.push_back(leaf({width, width}, like));
    parameters.push_back(leaf({width}, like));
  }
  for (const Tensor& p : parameters) set_grad(p, normal(p.shape(), like));
  const auto optimizer = std::make_shared<optim::AdamW>(parameters, optim::AdamWOptions{.weight_decay = 0.1});
  return [=] { return Times{each_of(at_once(like.device), like.device, [&](int) { optimizer->step(); }), 0}; };
}

// A chain of additions. With width 1 it shows the cost of recording an op and of its node in the backward.
Run chain_of(int64_t length, int64_t width, TensorOptions like) {
  const Tensor x = leaf({width}, like), step = normal({width}, like);
  return differentiable({x}, [=] {
    Tensor y = x;
    for (int64_t i = 0; i < length; ++i) y = add(y, step);
    return std::vector<Tensor>{y};
  });
}

// Copies the bytes of a tensor with the shape: a piece per thread, or the device's own copy.
Run memcpy_of(int64_t rows, int64_t width, TensorOptions like) {
  const Tensor from = normal({rows, width}, like), to = empty_like(from);
  if (like.device != kCpu)
    return [=] { return Times{each_of(kQueued, like.device, [&](int) { copy_into(to, from); }), 0}; };
  const int64_t bytes = from.numel() * static_cast<int64_t>(size_of(like.dtype));
  const int64_t piece = ceil_div(bytes, num_threads());
  return [=] {
    const auto* source = static_cast<const char*>(from.impl().storage->data());
    auto* target = static_cast<char*>(to.impl().storage->data());
    return Times{milliseconds([&] {
                   parallel_for(bytes, piece, [&](int64_t begin, int64_t end) {
                     std::memcpy(target + begin, source + begin, static_cast<size_t>(end - begin));
                   });
                 }),
                 0};
  };
}

double elements(double rows, double width) { return rows * width; }
double products(double rows, double width) { return rows * width * width; }

constexpr KernelOp kOps[] = {
    {"add_norm_layer", "rows", "width", add_norm_of<NormKind::layer>, elements},
    {"add_norm_rms", "rows", "width", add_norm_of<NormKind::rms>, elements},
    {"layer_norm", "rows", "width", layer_norm_of, elements},
    {"rms_norm", "rows", "width", rms_norm_of, elements},
    {"softmax", "rows", "width", softmax_of, elements},
    {"gelu", "rows", "width", gelu_of, elements},
    {"mlp", "rows", "width", mlp_of, products},
    {"cross_entropy", "rows", "classes", cross_entropy_of, elements},
    {"linear", "rows", "width", linear_of, products},
    {"attention", "batch", "length", attention_of, products},
    {"conv2d", "images", "channels", conv2d_of<kSide>, products},
    {"conv2d_rgb", "images", "channels", conv2d_of<2 * kSide, 1, 3>, elements},
    {"conv2d_large", "images", "channels", conv2d_of<2 * kSide>, products},
    {"conv2d_stride2", "images", "channels", conv2d_of<2 * kSide, 2>, products},
    {"max_pool2d", "images", "channels", max_pool2d_of, elements},
    {"gru_step", "batch", "hidden", gru_step_of, elements},
    {"lstm_step", "batch", "hidden", lstm_step_of, elements},
    {"gru_rms", "batch", "hidden", recurrent_of<nn::Gru>, products},
    {"lstm_rms", "batch", "hidden", recurrent_of<nn::Lstm>, products},
    {"adamw", "layers", "width", adamw_of, products},
    {"chain", "ops", "width", chain_of, elements},
    {"memcpy", "rows", "width", memcpy_of, elements},
};

}  // namespace

std::span<const KernelOp> kernel_ops() { return kOps; }

const KernelOp& kernel_op(std::string_view name) {
  std::string names;
  for (const KernelOp& op : kOps) {
    if (op.name == name) return op;
    names += (names.empty() ? "" : ", ") + std::string(op.name);
  }
  check(false, "no op is called \"", name, "\"; there are ", names);
  return kOps[0];
}

}  // namespace isonorm::bench
