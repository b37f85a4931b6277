// Mistakes in a convolutional network and in smaller modules: padding, pooling, plans, running statistics, groups.
#include "tests/equivalence/unseen_mistakes.h"

namespace isonorm::unseen {

namespace {

using equivalence::Comparison, equivalence::compare_gradients, training::Examples;

// Images [n, 8, 8, 2] -> 3 classes.
struct Net : nn::Module {
  nn::Conv2d& conv1 = add("conv1", nn::Conv2d(2, 4, 3, {.padding = 1}));
  nn::BatchNorm& norm1 = add("norm1", nn::BatchNorm(4));
  nn::Conv2d& conv2 = add("conv2", nn::Conv2d(4, 8, 3, {.stride = 2, .padding = 1}));
  nn::GroupNorm& norm2 = add("norm2", nn::GroupNorm(2, 8));
  nn::Linear& head = add("head", nn::Linear(8 * 2 * 2, 3));

  Net() { to(DType::f64); }
  Tensor forward(const Tensor& x) override {
    const Tensor y = relu(norm1(conv1(x)));
    return head(flatten(max_pool2d(silu(norm2(conv2(y))), 2), 1));
  }
};

Tensor divided(const Tensor& c, const Tensor& variance, double eps = 1e-5) { return c / sqrt(variance + eps); }

// Rows normalised over groups of channels: [n, height, width, 2, 4], or with channel c in group c % 2.
Tensor in_groups(const Tensor& x, double eps, bool interleaved) {
  const Tensor g = reshape(x, {x.size(0), x.size(1), x.size(2), interleaved ? 4 : 2, interleaved ? 2 : 4});
  const std::vector<int> over = {1, 2, interleaved ? 3 : 4};
  const Tensor c = g - mean(g, over, true);
  return reshape(divided(c, mean(square(c), over, true), eps), x.shape());
}

// The same network by hand. A mistake replaces a step.
struct OwnNet : Net {
  using Step = std::function<Tensor(const Tensor&)>;

  Step first = [this](const Tensor& x) { return conv2d(x, conv1.weight, conv1.bias, {.padding = 1}); };
  std::function<Tensor(const Tensor&, int64_t)> running = [](const Tensor& variance, int64_t n) {
    return variance * (static_cast<double>(n) / static_cast<double>(n - 1));
  };
  double share = 0.1;     // of the batch in the running statistics
  bool constant = false;  // the backward treats mean and variance as constants
  Step batch_norm = [this](const Tensor& x) {
    const Tensor m = mean(x, {0, 1, 2}), v = var(x, {0, 1, 2}, 0);
    for (const auto& [statistic, batch] :
         {std::pair(&norm1.running_mean, m), {&norm1.running_var, running(v, x.numel() / x.size(-1))}}) {
      const NoGrad no_graph;
      *statistic += (batch - *statistic) * share;
    }
    const Tensor y = constant ? divided(x - detach(m), detach(v)) : divided(x - m, v);
    return y * norm1.weight + norm1.bias;
  };
  Step second = [this](const Tensor& x) { return conv2d(x, conv2.weight, conv2.bias, {.stride = 2, .padding = 1}); };
  Step group_norm = [this](const Tensor& x) { return in_groups(x, 1e-5, false) * norm2.weight + norm2.bias; };
  Step pool = [](const Tensor& x) { return max_pool2d(x, 2); };
  Step flat = [](const Tensor& x) { return flatten(x, 1); };

  Tensor forward(const Tensor& x) override {
    return head(flat(pool(silu(group_norm(second(relu(batch_norm(first(x)))))))));
  }
};

// Rows [batch, time, 6]: an RMSNorm, then a gated feed-forward network.
struct Gated : nn::Module {
  nn::RMSNorm& norm = add("norm", nn::RMSNorm(6));
  nn::Linear& gate = add("gate", nn::Linear(6, 8, {.bias = false}));
  nn::Linear& up = add("up", nn::Linear(6, 8, {.bias = false}));
  nn::Linear& down = add("down", nn::Linear(8, 6, {.bias = false}));
  nn::Linear& head = add("head", nn::Linear(6, 3));

  Gated() { to(DType::f64); }
  Tensor forward(const Tensor& x) override {
    const Tensor n = norm(x);
    return head(mean(x + down(silu(gate(n)) * up(n)), {1}));
  }
};

struct OwnGated : Gated {
  using Step = std::function<Tensor(const Tensor&)>;

  Step normalize = [this](const Tensor& x) { return x * rsqrt(mean(square(x), {-1}, true) + 1e-5) * norm.weight; };
  Step gated = [this](const Tensor& n) { return silu(gate(n)) * up(n); };
  Step pooled = [](const Tensor& x) { return mean(x, {1}); };

  Tensor forward(const Tensor& x) override { return head(pooled(x + down(gated(normalize(x))))); }
};

// Images or rows, and a class for each.
Examples batch(const Dims& shape, uint64_t seed, int64_t point) {
  Generator data{seed, static_cast<uint64_t>(point)};
  return {randn(shape, {DType::f64}, data), randint(0, 3, {5}, kCpu, data)};
}

template <class A, class B> std::function<Comparison()> compared(void (*change)(B&), const equivalence::Batches& data) {
  return [=] {
    manual_seed(4);
    A a;
    B b;
    change(b);
    return compare_gradients(a, b, {}, training::cross_entropy_of, data);
  };
}
std::function<Comparison()> net(void (*change)(OwnNet&)) {
  return compared<Net>(change, [](int64_t point) { return batch({5, 8, 8, 2}, 9, point); });
}
std::function<Comparison()> gated(void (*change)(OwnGated&)) {
  return compared<Gated>(change, [](int64_t point) { return batch({5, 4, 6}, 11, point); });
}

}  // namespace

std::vector<Mistake> image_mistakes() {
  return {
      {{"padding behind the image alone", "forward", "", "of conv2.weight in conv2 is the first"},
       net([](OwnNet& n) {  // TensorFlow's "same" for an even size and a stride of 2
         n.second = [&n](const Tensor& x) {
           return conv2d(pad(x, {{0, 0}, {0, 1}, {0, 1}, {0, 0}}), n.conv2.weight, n.conv2.bias, {.stride = 2});
         };
       })},
      {{"channels first before the head", "forward", "", "of head.weight in head is the first"}, net([](OwnNet& n) {
         n.flat = [](const Tensor& x) { return flatten(permute(x, {0, 3, 1, 2}), 1); };
       })},
      {{"a window turned by half a turn", "forward", "", "of conv1.weight in conv1 is the first"}, net([](OwnNet& n) {
         n.first = [&n](const Tensor& x) {
           return conv2d(x, flip(n.conv1.weight, {1, 2}), n.conv1.bias, {.padding = 1});
         };
       })},
      {{"rows for columns", "forward", "", "of conv1.weight in conv1 is the first"},
       net([](OwnNet& n) { n.first = [own = n.first](const Tensor& x) { return own(transpose(x, 1, 2)); }; })},
      {{"a mean for the largest", "forward", "", "`max_pool2d` [5, 2, 2, 8] after norm2 is the first"},
       net([](OwnNet& n) { n.pool = [](const Tensor& x) { return avg_pool2d(x, 2); }; })},
      {{"groups of a group norm interleaved", "forward", "", "of norm2.weight in norm2 is the first"},
       net([](OwnNet& n) {
         n.group_norm = [&n](const Tensor& x) { return in_groups(x, 1e-5, true) * n.norm2.weight + n.norm2.bias; };
       })},
      {{"another eps in a group norm", "forward", "", "of norm2.weight in norm2 is the first"}, net([](OwnNet& n) {
         n.group_norm = [&n](const Tensor& x) { return in_groups(x, 1e-6, false) * n.norm2.weight + n.norm2.bias; };
       })},
      {{"running statistics in training", "forward", "a part that acts in training only",
        "of norm1.weight in norm1 is the first"},
       net([](OwnNet& n) {
         n.batch_norm = [&n](const Tensor& x) {
           const nn::BatchNorm& b = n.norm1;
           return divided(x - b.running_mean, b.running_var) * b.weight + b.bias;
         };
       })},
      {{"constant statistics of a batch norm", "backward", "",
        "agree down to `batch_norm` [5, 8, 8, 4] of norm1.weight in norm1"},
       net([](OwnNet& n) { n.constant = true; })},
      {{"a running variance that is biased", "1 of 2 buffers differs", "", "=norm1.running_var"},
       net([](OwnNet& n) { n.running = [](const Tensor& variance, int64_t) { return variance; }; })},
      {{"the batch's share of running statistics is 0.9", "and all 2 buffers differ", "",
        "=norm1.running_mean norm1.running_var"},
       net([](OwnNet& n) { n.share = 0.9; })},
      {{"gains of 1 + weight", "forward",  // Gemma's
        "another use of the gain: the second model multiplies by gain + 1; with the same in norm",
        "in norm is the first"},
       gated([](OwnGated& n) {
         n.normalize = [&n](const Tensor& x) {
           return x * rsqrt(mean(square(x), {-1}, true) + 1e-5) * (n.norm.weight + 1);
         };
       })},
      {{"a sum of squares for their mean", "forward",
        "another divisor: the second model divides by 1 (a sum), the first by 6", "in norm is the first"},
       gated([](OwnGated& n) {
         n.normalize = [&n](const Tensor& x) { return x * rsqrt(sum(square(x), {-1}, true) + 1e-5) * n.norm.weight; };
       })},
      {{"gate and value exchanged", "forward", "", "`silu` [5, 4, 8] after gate is the first"},
       gated([](OwnGated& n) { n.gated = [&n](const Tensor& x) { return n.gate(x) * silu(n.up(x)); }; })},
      {{"the last token for the mean of all", "forward", "", "`sum` [5, 6] after down is the first"},
       gated([](OwnGated& n) { n.pooled = [](const Tensor& x) { return select(x, 1, 3); }; })},
  };
}

std::vector<Comparison> right_nets() {
  return {net([](OwnNet&) {})(), gated([](OwnGated&) {})()};
}

}  // namespace isonorm::unseen
