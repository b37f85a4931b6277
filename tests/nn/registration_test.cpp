// A module that is a plain member would not be trained: an error when it runs, but not for correct uses.
#include <thread>

#include "io/safetensors.h"
#include "nn/container.h"
#include "nn/gpt.h"
#include "nn/module_scope.h"
#include "nn/parameter_free.h"
#include "nn/recurrent/recurrent.h"
#include "optim/adam.h"
#include "tests/support/ops.h"
#include "tests/support/thrown.h"

using namespace isonorm;
using namespace isonorm::nn;
using Catch::Matchers::Contains;

namespace {

// Its forward calls `by`, which runs a module that was not registered with add().
struct Runs : Module {
  Linear& own = add("own", Linear(3, 3));
  std::function<Tensor(const Tensor&)> by;
  Tensor forward(const Tensor& x) override { return by(own(x)); }
};

std::string message(Module& m, const Tensor& x = randn({2, 3})) {
  return test::thrown([&] { m(x); });
}

}  // namespace

TEST_CASE("registration: a layer that is a plain member is named with the line that would be right") {
  struct Plain : Module {
    Linear fc1{3, 32};
    Linear& fc2 = add("fc2", Linear(32, 1));
    Tensor forward(const Tensor& x) override { return fc2(tanh(fc1(x))); }
  };
  Plain net;
  CHECK(message(net) ==
        "Plain runs a nn::Linear (weight [32, 3]) that was not given to add(), so nothing would train it; declare the "
        "member as nn::Linear& layer = add(\"layer\", nn::Linear(...)); where another owner trains it, borrow() it");
  struct Outer : Module {
    Plain& inner = add("inner", Plain());
    Tensor forward(const Tensor& x) override { return inner(x); }
  };
  Outer outer;
  CHECK_THAT(message(outer), Contains("inner: Plain runs a nn::Linear (weight [32, 3])"));
}

TEST_CASE("registration: a net of plain members has nothing to train, to save or to run") {
  struct Net : Module {
    Linear fc1{1, 32}, fc2{32, 1};
    Tensor forward(const Tensor& x) override { return fc2(tanh(fc1(x))); }
  };
  Net net;
  CHECK_THROWS_WITH(optim::Adam(net.parameters()), Contains("adam: it is made of no parameters, nothing would train"));
  CHECK_THROWS_WITH(save_safetensors("/no/such/folder/net", net.state_dict()), Contains("there is no tensor to save"));
  CHECK_THROWS_WITH(net(randn({2, 1})), Contains("Net runs a nn::Linear (weight [32, 1])"));
}

TEST_CASE("registration: so are pointers, lists, and what is run without its owner or by another operator()") {
  Runs net;
  auto owned = std::make_unique<Linear>(3, 3);
  std::vector<Linear> list;
  list.emplace_back(3, 3);
  Sequential layers(Linear(3, 3), Relu());
  Gru gru({.inputs = 3, .hidden = 4});
  Gpt gpt({.vocab = 5, .context = 4, .transformer = {.width = 8, .depth = 1, .heads = 2}});
  const std::pair<const char*, std::function<Tensor(const Tensor&)>> strangers[] = {
      {"runs a nn::Linear", [&](const Tensor& x) { return (*owned)(x); }},
      {"runs a nn::Linear", [&](const Tensor& x) { return list[0](x); }},
      {"runs a nn::Sequential (0.weight [3, 3])", [&](const Tensor& x) { return (*layers.children()[0])(x); }},
      {"runs a nn::Gru",
       [&](const Tensor& x) {
         return gru(reshape(x, {2, 1, 3})).output;
       }},
      {"runs a nn::Gpt (token.weight [5, 8])",  // gpt.features() is called, not operator()
       [&](const Tensor&) {
         return gpt.features(randint(0, 5, {1, 4}));
       }}};
  for (const auto& [says, by] : strangers) {
    net.by = by;
    CHECK_THAT(message(net), Contains(says));
  }
  CHECK(message(net).find("runs a") != std::string::npos);  // in every call, not only in the first
}

TEST_CASE("registration: a module of a user's operator() finds it by the scope that it begins with") {
  struct Pair : Module {
    Linear fc{3, 3};
    Tensor operator()(const Tensor& a, const Tensor& b) {
      const ModuleScope scope(*this);
      return fc(a) + b;
    }
  };
  Pair pair;
  const Tensor x = randn({2, 3});
  CHECK_THROWS_WITH(pair(x, x), Contains("Pair runs a nn::Linear"));
}

TEST_CASE("registration: a teacher that is frozen or under NoGrad, and layers without parameters, may be anybody's") {
  Runs net;
  Linear teacher(3, 3);
  Relu relu;
  net.by = [&](const Tensor& x) {
    const NoGrad no_grad;
    return teacher(x);
  };
  CHECK(message(net) == "");
  net.by = [&](const Tensor& x) { return relu(x); };
  CHECK(message(net) == "");
  net.by = [&](const Tensor& x) { return teacher(x); };
  CHECK(message(net) != "");
  teacher.freeze();
  CHECK(message(net) == "");
  backward(sum(square(net(randn({2, 3})))));
  CHECK(amax(abs(net.own.weight.grad())).item() > 0);
  teacher.freeze(false);
  CHECK(message(net) != "");
  const NoGrad no_grad;
  CHECK(message(net) == "");
}

TEST_CASE("registration: a module that another part of the tree owns is shared, wherever it is run from") {
  struct User : Module {
    Linear& shared;
    explicit User(Linear& layer) : shared(layer) {}
    Tensor forward(const Tensor& x) override { return shared(x); }
  };
  struct Tree : Module {
    Linear& layer = add("layer", Linear(3, 3));
    User& first = add("first", User(layer));
    User& second = add("second", User(layer));
    Tensor forward(const Tensor& x) override { return second(first(x)); }
    Tensor loss(const Tensor& x) { return sum(first(x)); }  // opens no scope of the root
  };
  Tree tree;
  CHECK(message(tree) == "");
  CHECK(tree.loss(randn({2, 3})).defined());
  Tree moved = std::move(tree);
  CHECK(message(moved) == "");
  Sequential inside{std::move(moved)};
  CHECK(message(inside) == "");
}

TEST_CASE("registration: what another owner trains is borrowed, with all that is in it") {
  struct Actor : Module {
    Sequential& trunk;
    Linear& head = add("head", Linear(3, 2));
    explicit Actor(Sequential& t) : trunk(borrow(t)) {}
    Tensor forward(const Tensor& x) override { return head((*trunk.children()[0])(x) + trunk(x)); }
  };
  Sequential trunk(Linear(3, 3), Tanh());
  Actor actor(trunk), critic(trunk);
  CHECK(message(actor) == "");
  Sequential inside{std::move(actor)};
  CHECK(message(inside) == "");
  CHECK(critic.named_parameters().size() == 2);
}

TEST_CASE("registration: a function of the user's, other threads and a module that failed leave no trace") {
  Linear a(3, 3), b(3, 3);
  const auto function = [&](const Tensor& x) { return b(a(x)); };
  CHECK(function(randn({2, 3})).defined());
  Runs net;
  net.by = [&](const Tensor& x) {
    std::thread([&] { CHECK_NOTHROW(a(detach(x))); }).join();
    return x;
  };
  CHECK(message(net) == "");
  net.by = [](const Tensor&) -> Tensor { throw std::runtime_error("mine"); };
  CHECK_THROWS_WITH(net(randn({2, 3})), "mine");
  CHECK(function(randn({2, 3})).defined());
}
