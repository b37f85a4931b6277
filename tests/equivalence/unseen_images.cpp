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

// The same network by hand, in overridable steps.
struct OwnNet : Net {
  virtual Tensor first(const Tensor& x) { return conv2d(x, conv1.weight, conv1.bias, {.padding = 1}); }
  virtual Tensor batch_norm(const Tensor& x) {
    const Tensor m = mean(x, {0, 1, 2}), v = var(x, {0, 1, 2}, 0);
    follow(norm1.running_mean, m);
    follow(norm1.running_var, running(v, x.numel() / x.size(-1)));
    return (x - m) / sqrt(v + 1e-5) * norm1.weight + norm1.bias;
  }
  virtual Tensor running(const Tensor& variance, int64_t n) {
    return variance * (static_cast<double>(n) / static_cast<double>(n - 1));
  }
  virtual void follow(Tensor& statistic, const Tensor& batch) {
    const NoGrad no_graph;
    statistic += (batch - statistic) * 0.1;
  }
  virtual Tensor second(const Tensor& x) { return conv2d(x, conv2.weight, conv2.bias, {.stride = 2, .padding = 1}); }
  virtual Tensor group_norm(const Tensor& x) {
    const Tensor g = reshape(x, {x.size(0), x.size(1), x.size(2), 2, 4});
    const Tensor c = g - mean(g, {1, 2, 4}, true);
    return reshape(c / sqrt(mean(square(c), {1, 2, 4}, true) + 1e-5), x.shape()) * norm2.weight + norm2.bias;
  }
  virtual Tensor pool(const Tensor& x) { return max_pool2d(x, 2); }
  virtual Tensor flat(const Tensor& x) { return flatten(x, 1); }
  Tensor forward(const Tensor& x) override {
    const Tensor y = relu(batch_norm(first(x)));
    return head(flat(pool(silu(group_norm(second(y))))));
  }
};

Examples images(int64_t point) {
  Generator data{9, static_cast<uint64_t>(point)};
  return {randn({5, 8, 8, 2}, {DType::f64}, data), randint(0, 3, {5}, kCpu, data)};
}

template <class B> Comparison compare_nets() {
  manual_seed(4);
  Net a;
  B b;
  return compare_gradients(a, b, {}, training::cross_entropy_of, images);
}

// TensorFlow's "same" padding for an even size and a stride of 2: only at the end.
struct PaddedBehind : OwnNet {
  Tensor second(const Tensor& x) override {
    return conv2d(pad(x, {{0, 0}, {0, 1}, {0, 1}, {0, 0}}), conv2.weight, conv2.bias, {.stride = 2});
  }
};

// Flattens with channels first, like PyTorch, but the head's weights are for channels last.
struct ChannelsFirst : OwnNet {
  Tensor flat(const Tensor& x) override { return flatten(permute(x, {0, 3, 1, 2}), 1); }
};

struct BiasedRunningVariance : OwnNet {
  Tensor running(const Tensor& variance, int64_t) override { return variance; }
};

// The weights of the old statistic and of the batch are exchanged.
struct MomentumExchanged : OwnNet {
  void follow(Tensor& statistic, const Tensor& batch) override {
    const NoGrad no_graph;
    statistic += (batch - statistic) * 0.9;
  }
};

// Channel c is in group c % 2, not c / 4.
struct InterleavedGroups : OwnNet {
  Tensor group_norm(const Tensor& x) override {
    const Tensor g = reshape(x, {x.size(0), x.size(1), x.size(2), 4, 2});
    const Tensor c = g - mean(g, {1, 2, 3}, true);
    return reshape(c / sqrt(mean(square(c), {1, 2, 3}, true) + 1e-5), x.shape()) * norm2.weight + norm2.bias;
  }
};

struct MeanPool : OwnNet {
  Tensor pool(const Tensor& x) override { return avg_pool2d(x, 2); }
};

// Batch norm whose backward treats mean and variance as constants.
struct ConstantStatistics : OwnNet {
  Tensor batch_norm(const Tensor& x) override {
    const Tensor m = detach(mean(x, {0, 1, 2})), v = detach(var(x, {0, 1, 2}, 0));
    follow(norm1.running_mean, m);
    follow(norm1.running_var, running(v, x.numel() / x.size(-1)));
    return (x - m) / sqrt(v + 1e-5) * norm1.weight + norm1.bias;
  }
};

// A true convolution: the window is rotated by 180 degrees.
struct WindowTurned : OwnNet {
  Tensor first(const Tensor& x) override { return conv2d(x, flip(conv1.weight, {1, 2}), conv1.bias, {.padding = 1}); }
};
struct RowsForColumns : OwnNet {
  Tensor first(const Tensor& x) override { return OwnNet::first(transpose(x, 1, 2)); }
};
// Uses running statistics instead of the batch's in training, too.
struct FrozenStatistics : OwnNet {
  Tensor batch_norm(const Tensor& x) override {
    return (x - norm1.running_mean) / sqrt(norm1.running_var + 1e-5) * norm1.weight + norm1.bias;
  }
};
struct OtherEps : OwnNet {
  Tensor group_norm(const Tensor& x) override {
    const Tensor g = reshape(x, {x.size(0), x.size(1), x.size(2), 2, 4});
    const Tensor c = g - mean(g, {1, 2, 4}, true);
    return reshape(c / sqrt(mean(square(c), {1, 2, 4}, true) + 1e-6), x.shape()) * norm2.weight + norm2.bias;
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

Examples sequences(int64_t point) {
  Generator data{11, static_cast<uint64_t>(point)};
  return {randn({5, 4, 6}, {DType::f64}, data), randint(0, 3, {5}, kCpu, data)};
}

template <class B> Comparison compare_gated() {
  manual_seed(4);
  Gated a;
  B b;
  return compare_gradients(a, b, {}, training::cross_entropy_of, sequences);
}

struct OwnGated : Gated {
  virtual Tensor normalize(const Tensor& x) { return x * rsqrt(mean(square(x), {-1}, true) + 1e-5) * norm.weight; }
  virtual Tensor gated(const Tensor& n) { return silu(gate(n)) * up(n); }
  virtual Tensor pooled(const Tensor& x) { return mean(x, {1}); }
  Tensor forward(const Tensor& x) override { return head(pooled(x + down(gated(normalize(x))))); }
};

// Gemma's gains are 1 + weight.
struct GainOfOnePlus : OwnGated {
  Tensor normalize(const Tensor& x) override {
    return x * rsqrt(mean(square(x), {-1}, true) + 1e-5) * (norm.weight + 1);
  }
};
struct SumOfSquares : OwnGated {
  Tensor normalize(const Tensor& x) override { return x * rsqrt(sum(square(x), {-1}, true) + 1e-5) * norm.weight; }
};
struct GateExchanged : OwnGated {
  Tensor gated(const Tensor& n) override { return gate(n) * silu(up(n)); }
};
struct LastToken : OwnGated {
  Tensor pooled(const Tensor& x) override { return select(x, 1, 3); }
};

}  // namespace

std::vector<Mistake> image_mistakes() {
  return {
      {{"padding behind the image alone", "forward", "", "of conv2.weight in conv2 is the first"},
       compare_nets<PaddedBehind>},
      {{"channels first before the head", "forward", "", "of head.weight in head is the first"},
       compare_nets<ChannelsFirst>},
      {{"a window turned by half a turn", "forward", "", "of conv1.weight in conv1 is the first"},
       compare_nets<WindowTurned>},
      {{"rows for columns", "forward", "", "of conv1.weight in conv1 is the first"}, compare_nets<RowsForColumns>},
      {{"a mean for the largest", "forward", "", "`max_pool2d` [5, 2, 2, 8] after norm2 is the first"},
       compare_nets<MeanPool>},
      {{"groups of a group norm interleaved", "forward", "", "of norm2.weight in norm2 is the first"},
       compare_nets<InterleavedGroups>},
      {{"another eps in a group norm", "forward", "", "of norm2.weight in norm2 is the first"}, compare_nets<OtherEps>},
      {{"running statistics in training", "forward", "a part that acts in training only",
        "of norm1.weight in norm1 is the first"},
       compare_nets<FrozenStatistics>},
      {{"constant statistics of a batch norm", "backward", "",
        "agree down to `batch_norm` [5, 8, 8, 4] of norm1.weight in norm1"},
       compare_nets<ConstantStatistics>},
      {{"a running variance that is biased", "1 of 2 buffers differs", "", "=norm1.running_var"},
       compare_nets<BiasedRunningVariance>},
      {{"the batch's share of running statistics is 0.9", "and all 2 buffers differ", "",
        "=norm1.running_mean norm1.running_var"},
       compare_nets<MomentumExchanged>},
      {{"gains of 1 + weight", "forward",
        "another use of the gain: the second model multiplies by gain + 1; with the same in norm",
        "in norm is the first"},
       compare_gated<GainOfOnePlus>},
      {{"a sum of squares for their mean", "forward",
        "another divisor: the second model divides by 1 (a sum), the first by 6", "in norm is the first"},
       compare_gated<SumOfSquares>},
      {{"gate and value exchanged", "forward", "", "`silu` [5, 4, 8] after gate is the first"},
       compare_gated<GateExchanged>},
      {{"the last token for the mean of all", "forward", "", "`sum` [5, 6] after down is the first"},
       compare_gated<LastToken>},
  };
}

std::vector<Comparison> right_nets() { return {compare_nets<OwnNet>(), compare_gated<OwnGated>()}; }

}  // namespace isonorm::unseen
