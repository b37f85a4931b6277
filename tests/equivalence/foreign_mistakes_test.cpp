// Mistakes from public issue lists of ports: a convolutional net, a gated recurrent net and an autoencoder. The code
// that finds causes was written without them. It must not name a cause that is not the mistake.
#include <map>

#include "autograd/ops/images.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/shape.h"
#include "equivalence/compare/compare.h"
#include "nn/group_norm.h"
#include "nn/linear.h"
#include "tests/equivalence/room.h"

namespace {

// A module with named parameters, whose forward is a function of its parameters.
struct Foreign : nn::Module {
  std::map<std::string, nn::Parameter*> p;
  std::string_view bug;
  explicit Foreign(std::string_view planted, const std::vector<std::pair<const char*, Dims>>& parameters)
      : bug(planted) {
    for (const auto& [name, shape] : parameters)
      p[name] = &add_parameter(name, randn(shape, {DType::f64}) * 0.4 + (name[0] == 'g' ? 1.0 : 0.0));
  }
  Tensor operator[](const char* name) const { return (*p.at(name))(); }
  bool is(std::string_view name) const { return bug == name; }
};

// conv, batch norm, relu, max pool, linear, like a port from a channels-last framework.
struct Pictures : Foreign {
  explicit Pictures(std::string_view bug)
      : Foreign(bug, {{"conv", {6, 3, 3, 2}}, {"gain", {6}}, {"shift", {6}}, {"head", {4, 24}}, {"bias", {4}}}) {}
  Tensor norm(const Tensor& x) const {
    const double n = static_cast<double>(x.numel() / 6), eps = is("eps of keras") ? 1e-3 : 1e-5;
    const Tensor c = x - mean(x, {0, 1, 2}, true);
    Tensor s = mean(square(c), {0, 1, 2}, true) * (is("variance unbiased") ? n / (n - 1) : 1);
    if (is("statistics without gradient")) s = detach(s);
    if (is("instance for batch")) s = mean(square(x - mean(x, {1, 2}, true)), {1, 2}, true);
    return c / sqrt(s + eps) * (*this)["gain"] + (is("shift forgotten") ? (*this)["shift"] * 0.0 : (*this)["shift"]);
  }
  Tensor forward(const Tensor& in) override {
    Tensor w = (*this)["conv"];
    if (is("kernel flipped")) w = flip(w, {1, 2});
    if (is("kernel transposed")) w = transpose(w, 1, 2);
    Tensor x = is("padding of tensorflow") ? conv2d(pad(in, {{0, 0}, {0, 2}, {0, 2}, {0, 0}}), w)
                                           : conv2d(in, w, {}, {.padding = 1});
    x = is("relu before norm") ? norm(relu(x)) : relu(norm(x));
    x = is("mean pool") ? avg_pool2d(x, 2) : max_pool2d(x, 2);
    if (is("channels first")) x = permute(x, {0, 3, 1, 2});
    return linear(reshape(x, {x.size(0), 24}), (*this)["head"],
                  is("bias twice") ? (*this)["bias"] * 2.0 : (*this)["bias"]);
  }
};

// A GRU over five steps and a head.
struct Recurrent : Foreign {
  explicit Recurrent(std::string_view bug)
      : Foreign(bug, {{"wi", {18, 4}}, {"wh", {18, 6}}, {"bi", {18}}, {"bh", {18}}, {"head", {3, 6}}}) {}
  static Tensor hard(const Tensor& x) { return clamp(x * 0.2 + 0.5, 0, 1); }
  Tensor forward(const Tensor& in) override {
    const auto gate = is("hard sigmoid") ? hard : sigmoid;
    Tensor h = is("first state of ones") ? ones({in.size(0), 6}, in.options()) : zeros({in.size(0), 6}, in.options()),
           all = h;
    for (int64_t t = 0; t < in.size(1); ++t) {
      const Tensor x = select(in, 1, is("read backwards") ? in.size(1) - 1 - t : t);
      std::vector<Tensor> a = chunk(linear(x, (*this)["wi"], (*this)["bi"]), 3, 1),
                          u = chunk(linear(h, (*this)["wh"], is("hidden bias forgotten") ? Tensor() : (*this)["bh"]), 3,
                                    1);
      if (is("gates of keras")) std::swap(a[0], a[1]), std::swap(u[0], u[1]);
      const Tensor r = gate(a[0] + u[0]), z = gate(a[1] + u[1]);
      const Tensor reset = is("reset before product")
                               ? linear(r * h, narrow((*this)["wh"], 0, 12, 6), narrow((*this)["bh"], 0, 12, 6))
                               : r * u[2];
      const Tensor n = is("relu state") ? relu(a[2] + reset) : tanh(a[2] + reset);
      h = is("update gate turned") ? z * n + (1.0 - z) * h : (1.0 - z) * n + z * h;
      if (is("truncated") && t == 2) h = detach(h);
      all = all + h;
    }
    return linear(is("mean of states") ? all / 5.0 : h, (*this)["head"]);
  }
};

// An autoencoder with noise and two losses.
struct Encoder : Foreign {
  explicit Encoder(std::string_view bug) : Foreign(bug, {{"enc", {6, 5}}, {"dec", {5, 3}}, {"bias", {5}}}) {}
  Tensor loss(const Tensor& x) {
    const std::vector<Tensor> code = chunk(linear(x, (*this)["enc"]), 2, 1);
    const Tensor mu = code[0], lv = code[1], noise = randn(mu.shape(), mu.options());
    const Tensor s = exp(lv * (is("deviation is variance") ? 1 : 0.5));
    const Tensor z = is("noise without gradient") ? mu + detach(s) * noise : mu + s * noise;
    const Tensor y = linear(z, (*this)["dec"], (*this)["bias"]);
    const Tensor kl = mean(sum(exp(lv) + square(mu) - 1.0 - lv, {1})) * (is("half forgotten") ? 1 : 0.5);
    const Tensor of_pictures = is("sum of squares") ? mse_loss(y, x, Reduction::sum) : mse_loss(y, x);
    if (is("divided by steps")) return (of_pictures + kl) / 4.0;
    return of_pictures + (is("sign of kl") ? neg(kl) : kl);
  }
};

template <class M> std::string message(const char* bug, const Dims& inputs, int64_t classes, std::string* cause) {
  manual_seed(11);
  M a(""), b(bug);
  const Objective loss = [](nn::Module& m, const Examples& e) {
    if constexpr (std::is_same_v<M, Encoder>)
      return dynamic_cast<M&>(m).loss(e.inputs);
    else
      return cross_entropy(m(e.inputs), e.targets);
  };
  const Comparison c = compare_gradients(a, b, {}, loss, [&](int64_t point) {
    Generator g{5, static_cast<uint64_t>(point) << 20};
    const Tensor x = randn(inputs, {DType::f64}, g);
    return Examples{x, randint(0, classes, {inputs[0]}, kCpu, g)};
  });
  *cause = c.likely_cause;
  return c.sentence();
}

}  // namespace

TEST_CASE("mistakes of others: no cause is named but the mistake") {
  struct Case {
    const char *bug, *cause;
    std::string (*message)(const char*, std::string*);
  };
  const auto pictures = [](const char* bug, std::string* cause) {
    return message<Pictures>(bug, {7, 4, 4, 2}, 4, cause);
  };
  const auto recurrent = [](const char* bug, std::string* cause) {
    return message<Recurrent>(bug, {7, 5, 4}, 3, cause);
  };
  const auto encoder = [](const char* bug, std::string* cause) { return message<Encoder>(bug, {7, 5}, 2, cause); };
  const Case cases[] = {
      {"eps of keras", "", pictures},
      {"variance unbiased", "", pictures},
      {"statistics without gradient", "", pictures},
      {"instance for batch", "", pictures},
      {"shift forgotten", "", pictures},
      {"kernel flipped", "", pictures},
      {"kernel transposed", "", pictures},
      {"padding of tensorflow", "", pictures},
      {"relu before norm", "", pictures},
      {"mean pool", "", pictures},
      {"channels first", "", pictures},
      {"bias twice", "", pictures},
      {"first state of ones", "", recurrent},
      {"hard sigmoid", "", recurrent},
      {"read backwards", "", recurrent},
      {"hidden bias forgotten", "", recurrent},
      {"gates of keras", "", recurrent},
      {"reset before product", "", recurrent},
      {"relu state", "", recurrent},
      {"update gate turned", "", recurrent},
      {"truncated", "", recurrent},
      {"mean of states", "", recurrent},
      {"deviation is variance", "", encoder},
      {"noise without gradient", "", encoder},
      {"half forgotten", "", encoder},
      {"sum of squares", "", encoder},
      {"divided by steps", "a factor of the loss: the loss and all 3 gradients of the second model are 0.25 times",
       encoder},
      {"sign of kl", "", encoder},
  };
  std::string table;
  for (const Case& c : cases) {
    std::string cause;
    const std::string said = c.message(c.bug, &cause);
    INFO(c.bug << ": " << said);
    CHECK_THAT(said, StartsWith("different: "));
    CHECK(cause.starts_with(c.cause));
    CHECK(cause.empty() == !*c.cause);
    table += text("== ", c.bug, "\n", said, '\n');
  }
  SUCCEED(table);
}
