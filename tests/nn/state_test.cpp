// State dicts: parts, copies, and replaced children.
#include "streams/transformer.h"

#include "nn/container.h"
#include "nn/parameter_free.h"
#include "optim/sgd.h"
#include "tests/nn/models.h"

using namespace isonorm;
using namespace isonorm::nn;
using Catch::Matchers::Contains;
using Names = std::vector<std::string>;

namespace {
struct Net : Module {
  Linear& body = add("body", Linear(4, 3));
  Linear& head = add("head", Linear(3, 2));
  Tensor forward(const Tensor& x) override { return head(relu(body(x))); }
};
}  // namespace

TEST_CASE("state: parts are loaded if requested, and the missing rest is reported") {
  Net net;
  TensorMap part;
  part.add("body.weight", full({3, 4}, 7));
  part.add("head.bias", full({2}, 5));
  part.add("classifier.weight", full({1}, 1));
  const std::vector<float> before = net.body.bias.to_vector<float>();
  CHECK_THROWS_WITH(net.load_state_dict(part), Contains("missing     body.bias [3]"));
  const LoadedState found = net.load_state_dict(part, {.strict = false});
  CHECK(found.missing == Names{"body.bias", "head.weight"});
  CHECK(found.unexpected == Names{"classifier.weight"});
  CHECK(net.body.weight.to_vector<float>() == std::vector<float>(12, 7));
  CHECK(net.head.bias.to_vector<float>() == std::vector<float>(2, 5));
  CHECK(net.body.bias.to_vector<float>() == before);
  const LoadedState all = net.load_state_dict(clone(net.state_dict()));
  CHECK((all.missing.empty() && all.unexpected.empty()));
}

TEST_CASE("state: a part with another shape or dtype, or without a matching name, changes nothing") {
  Net net;
  const TensorMap before = clone(net.state_dict());
  TensorMap shape, dtype, other;
  shape.add("body.weight", full({3, 4}, 7));
  shape.add("head.weight", full({5, 3}, 7));
  CHECK_THROWS_WITH(net.load_state_dict(shape, {.strict = false}),
                    "load_state_dict: the tensors do not fit this module:\n"
                    "  mis-shaped  head.weight: expected [2, 3], given [5, 3]");
  shape.add("extra", empty({1}));
  CHECK_THROWS_WITH(net.load_state_dict(shape), Contains("mis-shaped  head.weight: expected [2, 3], given [5, 3]") &&
                                                    Contains("missing     body.bias [3]") &&
                                                    Contains("unexpected  extra"));
  dtype.add("body.weight", full({3, 4}, 7));
  dtype.add("head.weight", full({2, 3}, 7, {DType::f64}));
  CHECK_THROWS_WITH(net.load_state_dict(dtype, {.strict = false}),
                    "load_state_dict: head.weight is f64, this module's is f32; convert one of them first: "
                    "module.to(DType::f64), or to() of the tensors");
  other.add("model.body.weight", full({3, 4}, 7));
  CHECK_THROWS_WITH(
      net.load_state_dict(other, {.strict = false}),
      "load_state_dict: none of the 1 tensors has a name of this module: model.body.weight is the "
      "first, here body.weight; their names begin with 'model.', which tensors.below(\"model.\") removes");
  CHECK_THROWS_WITH(net.load_state_dict({}, {.strict = false}), Contains("none of the 0 tensors"));
  for (const auto& [name, t] : net.state_dict()) CHECK(t.to_vector<float>() == before.at(name).to_vector<float>());
  Net wide;
  wide.to(DType::f64), net.to(DType::f64);
  net.load_state_dict(clone(wide.state_dict()));
  CHECK(net.body.weight.to_vector<double>() == wide.body.weight.to_vector<double>());
}

TEST_CASE("state: tensors of another shape are left out if requested, and named") {
  Net net;
  const TensorMap before = clone(net.state_dict());
  TensorMap five;  // for a head with five classes
  five.add("body.weight", full({3, 4}, 7));
  five.add("body.bias", full({3}, 6));
  five.add("head.weight", full({5, 3}, 7));
  five.add("head.bias", full({5}, 7));
  const LoadedState found = net.load_state_dict(five, {.skip_mismatched = true});
  CHECK(found.mismatched == Names{"head.weight", "head.bias"});
  CHECK((found.missing.empty() && found.unexpected.empty()));
  CHECK(net.body.weight.to_vector<float>() == std::vector<float>(12, 7));
  CHECK(net.body.bias.to_vector<float>() == std::vector<float>(3, 6));
  for (const char* kept : {"head.weight", "head.bias"})
    CHECK(net.state_dict().at(kept).to_vector<float>() == before.at(kept).to_vector<float>());
  five.add("old", ones({1}));
  CHECK_THROWS_WITH(net.load_state_dict(five, {.skip_mismatched = true}),
                    "load_state_dict: the tensors do not fit this module:\n  unexpected  old [1]");
  CHECK(net.load_state_dict(five, {.strict = false, .skip_mismatched = true}).unexpected == Names{"old"});
  TensorMap head;
  head.add("head.bias", full({5}, 7));
  CHECK_THROWS_WITH(net.load_state_dict(head, {.strict = false, .skip_mismatched = true}),
                    "load_state_dict: no tensor has the shape that it has in this module: 1 have another");
}

TEST_CASE("state: a clone keeps the values; the state itself follows the training and is not loaded") {
  Net net;
  const TensorMap alias = net.state_dict(), best = clone(net.state_dict());
  const std::vector<float> then = net.body.weight.to_vector<float>();
  fill(net.body.weight, 9);
  CHECK(alias.at("body.weight").to_vector<float>() == std::vector<float>(12, 9));
  CHECK(best.at("body.weight").to_vector<float>() == then);
  CHECK_FALSE(requires_grad(best.at("body.weight")));
  CHECK_THROWS_WITH(net.load_state_dict(alias),
                    "load_state_dict: these are this module's own tensors, which went on training; keep values as "
                    "clone(state_dict())");
  net.load_state_dict(best);
  CHECK(net.body.weight.to_vector<float>() == then);
}

TEST_CASE("state: a head is replaced in place, references to it go on") {
  manual_seed(4);
  Net net;
  net.to(DType::f64);
  net.eval();
  optim::Sgd old(net.parameters(), {.lr = 1});
  const Linear* const where = &net.head;
  Linear& head = net.replace("head", Linear(3, 5));
  CHECK(&head == where);
  CHECK(net.head.weight.shape() == Dims{5, 3});
  CHECK(net.head.weight.dtype() == DType::f64);
  CHECK_FALSE(net.head.training());
  CHECK(names(net) == Names{"body.weight", "body.bias", "head.weight", "head.bias"});

  const Tensor x = randn({2, 4}, {DType::f64});
  const Tensor y = net(x);  // opens a scope, so the new child must belong to the tree
  const Tensor hidden = relu(matmul(x, transpose(net.body.weight, 0, 1)) + net.body.bias);
  check_close(y, matmul(hidden, transpose(head.weight, 0, 1)) + head.bias, 1e-14);

  backward(sum(y));
  CHECK_THROWS_WITH(old.step(), Contains("nothing else holds parameter 2 of shape [2, 3]"));
  const std::vector<double> before = head.bias.to_vector<double>();
  optim::Sgd(net.parameters(), {.lr = 1}).step();
  CHECK(head.bias.to_vector<double>()[0] == before[0] - 2);
}

TEST_CASE("state: what references could not follow is not replaced") {
  Net net;
  const std::vector<float> before = net.head.bias.to_vector<float>();
  CHECK_THROWS_WITH(net.replace("heads", Linear(3, 5)), "replace: there is no child 'heads'; there are body, head");
  CHECK_THROWS_WITH(net.replace("head", Sequential(Linear(3, 5), Relu())),
                    "replace: 'head' is a nn::Linear, the new one a nn::Sequential; the members that refer to it need "
                    "the same class (a Sequential can hold any layers)");
  CHECK(net.head.bias.to_vector<float>() == before);
  Sequential layers(Linear(4, 3), Relu(), Sequential(Linear(3, 2)));
  layers.replace("2", Sequential(Linear(3, 8), Relu(), Linear(8, 5)));
  CHECK(layers(randn({2, 4})).shape() == Dims{2, 5});
  const VitOptions small{.image = 6, .patch = 3, .transformer = {.width = 8, .depth = 1, .heads = 2}};
  Vit plain(small), vit = streams::make<Vit>(small);
  plain.replace("head", Linear(8, 5));
  CHECK(plain(randn({2, 6, 6, 1})).shape() == Dims{2, 5});
  CHECK_THROWS_WITH(vit.replace("head", Linear(8, 5)),
                    "replace: 'head' is part of a model that was parametrized as a whole; replace it before that");
  Gpt tied({.vocab = 6, .context = 4, .tied = true, .transformer = {.width = 8, .depth = 1, .heads = 2}});
  CHECK_THROWS_WITH(tied.replace("token", Embedding(7, 8)),
                    "replace: 'head' computes with 'token', which it borrowed; build a new model");
}

TEST_CASE("state: errors name a module's path once, with the list that it is in") {
  struct Layers : Module {
    ModuleList<LayerNorm>& list = add("list", ModuleList<LayerNorm>());
    Layers() { list.append(LayerNorm(4)); }
    Tensor forward(const Tensor& x) override {
      Tensor y = x;
      for (LayerNorm* layer : list) y = (*layer)(y);
      return y;
    }
  };
  Layers net;
  CHECK_THROWS_WITH(net(randn({2, 3})), "list.0: norm: rows of shape [2, 3], its width is 4");
}

TEST_CASE("state: modules are listed with their paths, parents first") {
  const Sequential layers(Linear(4, 3), Sequential(Linear(3, 2), Relu()));
  std::vector<std::string> paths;
  for (const auto& [path, module] : layers.named_modules()) paths.push_back(path);
  CHECK(paths == std::vector<std::string>{"", "0", "1", "1.0", "1.1"});
  CHECK(layers.named_modules()[0].second == &layers);
}
