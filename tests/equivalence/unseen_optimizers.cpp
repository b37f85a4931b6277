// Mistakes in optimizers written by hand: moments, corrections, decays, groups, momentum, clipping, schedules,
// accumulation, and mistakes that begin late.
#include "tests/equivalence/unseen_mistakes.h"

namespace isonorm::unseen {
namespace {

using equivalence::Comparison, equivalence::compare_trajectories, equivalence::Which, training::Examples;
using Parameters = std::vector<Tensor>;
using Make = std::function<std::unique_ptr<optim::Optimizer>(const Parameters&)>;
using Compare = std::function<Comparison()>;

// Calls begin() and then, for each parameter i, update(i, w, g) with its gradient g, at step t = 1, 2, ...
struct OwnOptimizer : optim::Optimizer {
  OwnOptimizer(const Parameters& of, double rate) : Optimizer("own", of.size()), parameters(of) {
    add_group(parameters, rate);
    for (const Tensor& w : parameters) first.push_back(zeros_like(w)), second.push_back(zeros_like(w));
  }
  void step(double scale) override {
    const NoGrad no_graph;
    ++t;
    begin();
    for (size_t i = 0; i < parameters.size(); ++i)
      if (Tensor w = parameters[i]; w.grad().defined()) update(i, w, w.grad() * scale);
  }
  std::function<void()> begin = [] {};
  std::function<void(size_t, Tensor&, const Tensor&)> update;
  Parameters parameters, first, second;  // and two moments of each parameter
  int t = 0;
};

// A mistake replaces a part of Adam.
struct OwnAdam : OwnOptimizer {
  OwnAdam(const Parameters& of, double rate) : OwnOptimizer(of, rate) {
    update = [this](size_t i, Tensor& w, const Tensor& g) {
      first[i] = first[i] * 0.9 + g * 0.1;
      second[i] = second[i] * 0.999 + g * g * 0.001;
      w *= 1 - lr() * decay(w);
      w -= direction(first[i], second[i]) * lr();
    };
  }
  double correction(double beta) const { return 1 - std::pow(beta, t); }
  std::function<Tensor(const Tensor&, const Tensor&)> direction = [this](const Tensor& m, const Tensor& v) {
    return m / correction(0.9) / (sqrt(v / correction(0.999)) + 1e-8);
  };
  std::function<double(const Tensor&)> decay = [](const Tensor&) { return 0; };
};

// A mistake replaces a part of SGD with momentum.
struct OwnMomentum : OwnOptimizer {
  OwnMomentum(const Parameters& of, double rate) : OwnOptimizer(of, rate) {
    update = [this](size_t i, Tensor& w, const Tensor& g) {
      first[i] = first[i] * 0.9 + gradient(i, g);
      w -= first[i] * lr();
    };
  }
  std::function<Tensor(size_t, const Tensor&)> gradient = [](size_t, const Tensor& g) { return g; };
};

// Rows of 6 numbers with a class each; a network of two layers and a norm.
struct Classifier : nn::Module {
  nn::Linear& in = add("in", nn::Linear(6, 10));
  nn::LayerNorm& norm = add("norm", nn::LayerNorm(10));
  nn::Linear& out = add("out", nn::Linear(10, 3));

  Classifier() { to(DType::f64); }
  Tensor forward(const Tensor& x) override { return out(tanh(norm(in(x)))); }
};

Examples rows(int64_t step) {
  Generator data{6, static_cast<uint64_t>(step)};
  return {randn({8, 6}, {DType::f64}, data), randint(0, 3, {8}, kCpu, data)};
}

template <class Second = Classifier>
Comparison compared(const equivalence::MakeOptimizer& optimizer, int steps,
                    const training::Objective& loss = training::cross_entropy_of) {
  manual_seed(8);
  return compare_trajectories([] { return std::make_unique<Classifier>(); }, [] { return std::make_unique<Second>(); },
                              {}, loss, optimizer, rows, {.steps = steps});
}

Compare by(const Make& first, const Make& second) {
  return [=] {
    return compared([=](const Parameters& p, Which which) { return which == Which::first ? first(p) : second(p); }, 12);
  };
}
template <class O> Make changed(void (*change)(O&), double rate) {
  return [=](const Parameters& p) {
    auto own = std::make_unique<O>(p, rate);
    change(*own);
    return own;
  };
}
Compare adam_by(const Make& first, void (*change)(OwnAdam&)) { return by(first, changed(change, 1e-2)); }
Compare momentum_by(const Make& first, void (*change)(OwnMomentum&)) { return by(first, changed(change, 0.1)); }

template <class O, class Options> Make library(const Options& options) {
  return [=](const Parameters& p) { return std::make_unique<O>(p, options); };
}
Make adam(double eps = 1e-8) { return library<optim::Adam>(optim::AdamOptions{.lr = 1e-2, .eps = eps}); }
Make adamw() { return library<optim::AdamW>(optim::AdamWOptions{.lr = 1e-2, .weight_decay = 0.1}); }
Make sgd(double weight_decay = 0) {
  return library<optim::Sgd>(optim::SgdOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = weight_decay});
}
// Matrices decay, norms and biases do not.
std::unique_ptr<optim::Optimizer> grouped(const Parameters& p) {
  Parameters matrices, others;
  for (const Tensor& w : p) (w.rank() > 1 ? matrices : others).push_back(w);
  return std::make_unique<optim::AdamW>(std::vector<optim::ParameterGroup<optim::AdamWOptions>>{
      {matrices, {.lr = 1e-2, .weight_decay = 0.1}}, {others, {.lr = 1e-2, .weight_decay = 0}}});
}
// The head's rate is a tenth of the others'.
std::unique_ptr<optim::Optimizer> slow_head(const Parameters& p) {
  return std::make_unique<optim::Sgd>(std::vector<optim::ParameterGroup<optim::SgdOptions>>{
      {Parameters(p.begin(), p.end() - 2), {.lr = 0.1, .momentum = 0.9}},
      {Parameters(p.end() - 2, p.end()), {.lr = 0.01, .momentum = 0.9}}});
}

void clips_all(OwnMomentum& o) {
  const auto factor = std::make_shared<double>(1);
  o.begin = [&o, factor] { *factor = optim::clip_factor(optim::grad_norm(o.parameters), 0.05); };
  o.gradient = [factor](size_t, const Tensor& g) { return g * *factor; };
}
// A warm-up of 4 steps, which begins with a quarter of the rate or with 0.
template <int late> void warms_up(OwnMomentum& o) {
  o.begin = [&o] { o.set_lr(0.1 * std::min(1.0, (o.t - late) / 4.0)); };
}
template <int last> void falls_after(OwnMomentum& o) {
  o.begin = [&o] { o.set_lr(o.t > last ? 0.01 : 0.1); };
}

// Both accumulate a batch in two halves; the second adds the means of the halves.
Comparison unscaled_accumulation() {
  struct Own : Classifier {};
  return compared<Own>([](const Parameters& p) { return sgd()(p); }, 8,
                       [](nn::Module& model, const Examples& batch) {
                         const Tensor l = training::cross_entropy_of(model, batch.rows(0, 4)) +
                                          training::cross_entropy_of(model, batch.rows(4, 4));
                         return dynamic_cast<Own*>(&model) ? l : l / 2;
                       });
}

// After step 7 the second model's loss uses only the first half of the batch.
Comparison half_a_batch_late() {
  struct Own : Classifier {
    int calls = 0;
  };
  return compared<Own>([](const Parameters& p) { return sgd()(p); }, 12,
                       [](nn::Module& model, const Examples& batch) {
                         Own* own = dynamic_cast<Own*>(&model);
                         const bool half = own && ++own->calls > 7;
                         return training::cross_entropy_of(model, half ? batch.rows(0, 4) : batch);
                       });
}

Comparison frozen_norm() {
  struct Own : Classifier {
    Own() { norm.freeze(); }
  };
  return compared<Own>([](const Parameters& p) { return sgd()(p); }, 8);
}

Comparison head_forgotten() {
  return compared([](const Parameters& p,
                     Which which) { return sgd()(which == Which::first ? p : Parameters(p.begin(), p.end() - 2)); },
                  8);
}

constexpr const char* kSameFirstStep = "new optimizers take the same step";

}  // namespace

std::vector<Mistake> adam_mistakes() {
  return {
      {{"Lion for Adam", "update", "", "at step 1"}, by(adam(), library<optim::Lion>(optim::LionOptions{.lr = 1e-2}))},
      {{"Adagrad for Adam", "update", "", "at step 1"},
       by(adam(), library<optim::Adagrad>(optim::AdagradOptions{.lr = 1e-2}))},
      {{"RMSprop for Adam", "update", "", "at step 1"},
       by(adam(), library<optim::Rmsprop>(optim::RmspropOptions{.lr = 1e-2}))},
      {{"no bias correction", "update", "", "at step 1"},
       adam_by(
           adam(),
           [](OwnAdam& o) { o.direction = [](const Tensor& m, const Tensor& v) { return m / (sqrt(v) + 1e-8); }; })},
      {{"the step counts parameters", "update", "", "=in.bias norm.weight norm.bias out.weight out.bias"},
       adam_by(adam(),
               [](OwnAdam& o) {
                 o.update = [&o, own = o.update](size_t i, Tensor& w, const Tensor& g) {
                   if (i > 0) ++o.t;
                   own(i, w, g);
                 };
               })},
      {{"eps in the root", "update", "", "at step 1"},
       adam_by(adam(1e-5),
               [](OwnAdam& o) {
                 o.direction = [&o](const Tensor& m, const Tensor& v) {
                   return m / o.correction(0.9) / sqrt(v / o.correction(0.999) + 1e-5);
                 };
               })},
      {{"correction of the first moment alone", "update", "", "at step 1"},
       adam_by(adam(),
               [](OwnAdam& o) {
                 o.direction = [&o](const Tensor& m, const Tensor& v) {
                   return m / o.correction(0.9) / (sqrt(v) + 1e-8);
                 };
               })},
      {{"betas exchanged", "update", "", kSameFirstStep},
       adam_by(adam(),
               [](OwnAdam& o) {
                 o.update = [&o](size_t i, Tensor& w, const Tensor& g) {
                   Tensor &m = o.first[i], &v = o.second[i];
                   m = m * 0.999 + g * 0.001, v = v * 0.9 + g * g * 0.1;
                   w -= m / o.correction(0.999) / (sqrt(v / o.correction(0.9)) + 1e-8) * o.lr();
                 };
               })},
      {{"the largest second moment", "update", "", kSameFirstStep},
       adam_by(adam(),
               [](OwnAdam& o) {  // AMSGrad
                 o.update = [&o, largest = o.second](size_t i, Tensor& w, const Tensor& g) mutable {
                   o.first[i] = o.first[i] * 0.9 + g * 0.1, o.second[i] = o.second[i] * 0.999 + g * g * 0.001;
                   largest[i] = maximum(largest[i], o.second[i]);
                   w -= o.direction(o.first[i], largest[i]) * o.lr();
                 };
               })},
      {{"norms and biases decay, too", "update",
        "another weight decay: the second model takes off 0.001 of each weight per step, the first 0, in in.bias and 2 "
        "more",
        ""},
       adam_by(grouped, [](OwnAdam& o) { o.decay = [](const Tensor&) { return 0.1; }; })},
      {{"the groups of a decay exchanged", "update", "", "at step 1"},
       adam_by(grouped, [](OwnAdam& o) { o.decay = [](const Tensor& w) { return w.rank() > 1 ? 0 : 0.1; }; })},
      {{"a decay that is not multiplied by the rate", "update",
        "another weight decay: the second model takes off 0.1 of each weight per step, the first 0.001", ""},
       adam_by(adamw(), [](OwnAdam& o) { o.decay = [&o](const Tensor&) { return 0.1 / o.lr(); }; })},
      {{"decay after the step", "update", "", "at step 1"},
       adam_by(adamw(),
               [](OwnAdam& o) {
                 o.update = [&o, own = o.update](size_t i, Tensor& w, const Tensor& g) {
                   own(i, w, g);
                   w *= 1 - o.lr() * 0.1;
                 };
               })},
  };
}

std::vector<Mistake> momentum_mistakes() {
  return {
      {{"dampened momentum", "update", "", kSameFirstStep},
       momentum_by(sgd(),
                   [](OwnMomentum& o) {
                     o.gradient = [&o](size_t, const Tensor& g) {
                       return o.t == 1 ? g : g * 0.1;
                     };  // as in torch.optim.SGD
                   })},
      {{"Nesterov's momentum", "update", "", "at step 1"},
       momentum_by(sgd(),
                   [](OwnMomentum& o) {
                     o.update = [&o](size_t i, Tensor& w, const Tensor& g) {
                       o.first[i] = o.first[i] * 0.9 + g;
                       w -= (g + o.first[i] * 0.9) * o.lr();
                     };
                   })},
      {{"decay beside momentum", "update", "", kSameFirstStep},
       momentum_by(sgd(0.1),
                   [](OwnMomentum& o) {
                     o.update = [&o, own = o.update](size_t i, Tensor& w, const Tensor& g) {
                       w *= 1 - o.lr() * 0.1;
                       own(i, w, g);
                     };
                   })},
      {{"momentum forgotten after step 7", "update", "", kSameFirstStep},
       momentum_by(sgd(),
                   [](OwnMomentum& o) {
                     o.begin = [&o] {
                       if (o.t == 8)
                         for (Tensor& m : o.first) m = zeros_like(m);
                     };
                   })},
      {{"each tensor clipped by itself", "update", "", "at step 1"},
       by(changed(clips_all, 0.1), changed<OwnMomentum>(
                                       [](OwnMomentum& o) {
                                         o.gradient = [](size_t, const Tensor& g) {
                                           return g * std::min(1.0, 0.05 / (norm(g).item() + 1e-6));
                                         };
                                       },
                                       0.1))},
      {{"clipping in the second alone", "update", "a gradient that is scaled, as by clipping", ""},
       momentum_by(sgd(), clips_all)},
      {{"a trust ratio", "update", "", "=in.weight out.weight"},
       momentum_by(sgd(),
                   [](OwnMomentum& o) {  // as in LARS
                     o.gradient = [&o](size_t i, const Tensor& g) {
                       const Tensor& w = o.parameters[i];
                       return w.rank() > 1 ? g * (0.1 * norm(w).item() / norm(g).item()) : g;
                     };
                   })},
      {{"a gradient doubled at step 7", "update", "", "=norm.bias"},
       momentum_by(sgd(),
                   [](OwnMomentum& o) {
                     o.gradient = [&o](size_t i, const Tensor& g) { return o.t == 7 && i == 3 ? g * 2 : g; };
                   })},
      {{"an update skipped at step 7", "update", "as before; the step is skipped, or its rate is 0", "at step 7"},
       momentum_by(sgd(),
                   [](OwnMomentum& o) {
                     o.update = [&o, own = o.update](size_t i, Tensor& w, const Tensor& g) {
                       if (o.t != 7) own(i, w, g);
                     };
                   })},
      {{"weights that go back every fifth step", "update", "", kSameFirstStep},
       momentum_by(sgd(),
                   [](OwnMomentum& o) {
                     Parameters slow;
                     for (const Tensor& w : o.parameters) slow.push_back(clone(detach(w)));
                     o.update = [&o, slow, own = o.update](size_t i, Tensor& w, const Tensor& g) {
                       own(i, w, g);
                       if (o.t % 5 == 0) w -= (w - slow[i]) * 0.5;
                     };
                   })},
      {{"a warm-up from 0", "update", "or its rate is 0", ""},
       by(changed(warms_up<0>, 0.1), changed(warms_up<1>, 0.1))},
      {{"a rate that falls one step late", "update", "", kSameFirstStep},
       by(changed(falls_after<6>, 0.1), changed(falls_after<7>, 0.1))},
      {{"one rate for all", "update",
        "another learning rate, or a gradient that is scaled, as by clipping: the second model has 0.1, the first "
        "0.01, in out.weight and 1 more",
        ""},
       momentum_by(slow_head, [](OwnMomentum&) {})},
      {{"an optimizer without the head", "update", "its optimizer does not have them", "=out.weight out.bias"},
       head_forgotten},
      {{"a norm that is frozen", "backward", "", "the second model has frozen norm.weight, norm.bias"}, frozen_norm},
      {{"accumulation without division", "forward",
        "a factor of the loss: the loss and all 6 gradients of the second model are 2 times", ""},
       unscaled_accumulation},
      {{"half a batch after step 7", "forward", "", "new models with these weights agree on these examples"},
       half_a_batch_late},
  };
}

std::vector<Comparison> right_optimizers() {
  return {adam_by(adam(), [](OwnAdam&) {})(), momentum_by(sgd(), [](OwnMomentum&) {})()};
}

}  // namespace isonorm::unseen
