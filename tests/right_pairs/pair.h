// Right pairs: two ways to write one model, which no comparison may call different.
#pragma once

#include <map>

#include "isonorm.h"

namespace isonorm::right_pairs {

using equivalence::Batches, equivalence::Comparison, equivalence::CompareOptions, equivalence::MakeOptimizer;
using equivalence::ParameterMap, training::Examples, training::Objective;

// One comparison of a pair: initial weights, batches and points follow from the seed.
struct Draw {
  DType dtype = DType::f64;
  uint64_t seed = 1;
};

using Shapes = std::vector<std::pair<std::string, Dims>>;

// A model of named parameters and a forward function. Parameters are normal, with mean 1 if their name begins with g.
class Net : public nn::Module {
 public:
  using Forward = std::function<Tensor(Net&, const Tensor& x)>;
  using Loss = std::function<Tensor(Net&, const Examples& batch)>;

  Net(const Shapes& shapes, Forward forward, double deviation, const Draw& draw);
  // The parameter as the forward sees it.
  Tensor operator[](const std::string& name) { return parameters_.at(name)->operator()(); }
  void set(const std::string& name, double value);
  DType dtype() const { return dtype_; }

  Loss loss = nullptr;  // of loss_of_net()

 protected:
  Tensor forward(const Tensor& x) override { return forward_(*this, x); }

 private:
  std::map<std::string, nn::Parameter*> parameters_;
  Forward forward_;
  DType dtype_;
};

using Make = std::function<std::unique_ptr<nn::Module>(const Draw&)>;

Make net(const Shapes& shapes, Net::Forward forward, double deviation = 0.3);
// Nets whose parameter `name` begins as `value`.
Make with_value(const Make& make, const std::string& name, double value);
// Nets with a loss of their own, for loss_of_net().
Make with_loss(const Make& make, const Net::Loss& loss);
Tensor loss_of_net(nn::Module& net, const Examples& batch);
Tensor squared_error(nn::Module& model, const Examples& batch);

// A module class that is made from arguments, in the draw's dtype.
template <class M, class... Arguments> Make module_of(Arguments... arguments) {
  return [=](const Draw& draw) {
    manual_seed(draw.seed);
    auto module = std::make_unique<M>(arguments...);
    module->to(draw.dtype);
    return module;
  };
}

// The batches of a draw.
using Data = std::function<Batches(const Draw&)>;
Data rows(const Dims& shape, int64_t classes);                       // normal rows; a class for each example
Data rows(const Dims& shape, int64_t classes, const Dims& targets);  // classes of shape `targets`
Data token_ids(int64_t vocabulary, const Dims& shape);               // ids; an id as each target
Data regression(const Dims& shape, const Dims& targets);             // normal rows; normal targets
Data changed(const Data& data, const std::function<Examples(const Examples&)>& change);
Data one_batch(const Data& data);  // the first batch at every point and step

MakeOptimizer adamw(double lr);
MakeOptimizer sgd(double lr, double momentum = 0);

struct RightPair {
  std::string name;
  Make first, second;
  Data data;
  Objective loss = training::cross_entropy_of;
  ParameterMap map = {};
  std::optional<MakeOptimizer> optimizer = {};  // if set, trajectories are compared, else gradients
  CompareOptions options = {};
};
using RightPairs = std::vector<RightPair>;

// The same pair, its trajectories compared.
RightPair trained(RightPair pair, const std::string& how, const MakeOptimizer& optimizer, CompareOptions options = {});

Comparison compare(const RightPair& pair, const Draw& draw);

// Layer norm and RMSNorm over the last dimension, written out.
Tensor composed_layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias);
Tensor composed_rms_norm(const Tensor& x, const Tensor& gain);

RightPairs norm_pairs();
RightPairs attention_pairs();
RightPairs layer_pairs();
RightPairs more_layer_pairs();
RightPairs loss_pairs();
RightPairs numeric_pairs();
RightPairs transformer_pairs();
RightPairs all_pairs();

}  // namespace isonorm::right_pairs
