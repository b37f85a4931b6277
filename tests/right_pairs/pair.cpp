#include "tests/right_pairs/pair.h"

namespace isonorm::right_pairs {

Net::Net(const Shapes& shapes, Forward forward, double deviation, const Draw& draw)
    : forward_(std::move(forward)), dtype_(draw.dtype) {
  Generator generator{draw.seed, 0};
  for (const auto& [name, shape] : shapes) {
    const Tensor value = randn(shape, {DType::f64}, generator) * deviation + (name[0] == 'g' ? 1.0 : 0.0);
    parameters_[name] = &add_parameter(name, value.to(dtype_));
  }
}

void Net::set(const std::string& name, double value) {
  NoGrad no_grad;
  fill(*parameters_.at(name), value);
}

Make net(const Shapes& shapes, Net::Forward forward, double deviation) {
  return [=](const Draw& draw) { return std::make_unique<Net>(shapes, forward, deviation, draw); };
}

namespace {
Make changed_net(const Make& make, const std::function<void(Net&)>& change) {
  return [=](const Draw& draw) {
    auto made = make(draw);
    change(dynamic_cast<Net&>(*made));
    return made;
  };
}

Data drawn(const std::function<Examples(const Draw&, Generator&)>& draw_one) {
  return [=](const Draw& draw) -> Batches {
    return [=](int64_t i) {
      Generator generator{1000 + draw.seed, static_cast<uint64_t>(i) << 20};
      return draw_one(draw, generator);
    };
  };
}

Tensor normal(const Dims& shape, const Draw& draw, Generator& generator) {
  return randn(shape, {DType::f64}, generator).to(draw.dtype);
}
}  // namespace

Make with_value(const Make& make, const std::string& name, double value) {
  return changed_net(make, [=](Net& net) { net.set(name, value); });
}
Make with_loss(const Make& make, const Net::Loss& loss) {
  return changed_net(make, [=](Net& net) { net.loss = loss; });
}
Tensor loss_of_net(nn::Module& module, const Examples& batch) {
  Net& net = dynamic_cast<Net&>(module);
  return net.loss(net, batch);
}
Tensor squared_error(nn::Module& model, const Examples& batch) { return mse_loss(model(batch.inputs), batch.targets); }

Data rows(const Dims& shape, int64_t classes) { return rows(shape, classes, {shape[0]}); }
Data rows(const Dims& shape, int64_t classes, const Dims& targets) {
  return drawn([=](const Draw& draw, Generator& g) {
    const Tensor x = normal(shape, draw, g);
    return Examples{x, randint(0, classes, targets, kCpu, g)};
  });
}
Data token_ids(int64_t vocabulary, const Dims& shape) {
  return drawn([=](const Draw&, Generator& g) {
    const Tensor ids = randint(0, vocabulary, shape, kCpu, g);
    return Examples{ids, randint(0, vocabulary, shape, kCpu, g)};
  });
}
Data regression(const Dims& shape, const Dims& targets) {
  return drawn([=](const Draw& draw, Generator& g) {
    const Tensor x = normal(shape, draw, g);
    return Examples{x, normal(targets, draw, g)};
  });
}
Data changed(const Data& data, const std::function<Examples(const Examples&)>& change) {
  return
      [=](const Draw& draw) -> Batches { return [=, batches = data(draw)](int64_t i) { return change(batches(i)); }; };
}
Data one_batch(const Data& data) {
  return [=](const Draw& draw) -> Batches { return [=, batches = data(draw)](int64_t) { return batches(0); }; };
}

MakeOptimizer adamw(double lr) {
  return [=](const std::vector<Tensor>& p) { return std::make_unique<optim::AdamW>(p, optim::AdamWOptions{.lr = lr}); };
}
MakeOptimizer sgd(double lr, double momentum) {
  return [=](const std::vector<Tensor>& p) {
    return std::make_unique<optim::Sgd>(p, optim::SgdOptions{.lr = lr, .momentum = momentum});
  };
}

RightPair trained(RightPair pair, const std::string& how, const MakeOptimizer& optimizer, CompareOptions options) {
  pair.name += ", " + how;
  pair.optimizer = optimizer;
  pair.options = options;
  return pair;
}

Comparison compare(const RightPair& pair, const Draw& draw) {
  CompareOptions options = pair.options;
  options.seed = draw.seed;
  options.may_be_identical = true;  // whether two ways to write a sum have the same bits depends on the machine
  const Batches batches = pair.data(draw);
  if (pair.optimizer)
    return equivalence::compare_trajectories([&] { return pair.first(draw); }, [&] { return pair.second(draw); },
                                             pair.map, pair.loss, *pair.optimizer, batches, options);
  const auto first = pair.first(draw), second = pair.second(draw);
  return equivalence::compare_gradients(*first, *second, pair.map, pair.loss, batches, options);
}

Tensor composed_layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias) {
  const Tensor centred = x - mean(x, {-1}, true);
  return centred * rsqrt(mean(square(centred), {-1}, true) + 1e-5) * gain + bias;
}
Tensor composed_rms_norm(const Tensor& x, const Tensor& gain) {
  return x / sqrt(mean(square(x), {-1}, true) + 1e-5) * gain;
}

RightPairs all_pairs() {
  RightPairs all;
  for (const RightPairs& some : {norm_pairs(), attention_pairs(), layer_pairs(), more_layer_pairs(), loss_pairs(),
                                 numeric_pairs(), transformer_pairs()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace isonorm::right_pairs
