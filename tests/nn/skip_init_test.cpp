// SkipInit: layers that will be loaded draw no initial values.
#include "nn/modes.h"

#include <stdexcept>
#include <thread>

#include "nn/container.h"
#include "nn/conv.h"
#include "nn/gpt.h"
#include "nn/group_norm.h"
#include "nn/init.h"
#include "nn/recurrent/recurrent.h"
#include "nn/vit.h"
#include "streams/rotation.h"
#include "streams/transformer.h"
#include "tests/nn/models.h"
#include "tests/support/temp_folder.h"
#include "training/model_file.h"

using namespace isonorm;
using namespace isonorm::nn;

namespace {

bool all_nan(const Tensor& x) {
  for (const double v : x.to_vector<double>())
    if (!std::isnan(v)) return false;
  return true;
}

bool same(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && a.to_vector<double>() == b.to_vector<double>();
}

// A user's module whose constructor draws random numbers.
struct Masked : Module {
  Linear& map = add("map", Linear(3, 2));
  Tensor& mask = add_buffer("mask", rand({3}));
  Tensor forward(const Tensor& x) override { return map(x * mask); }
};

// Calls f() with the default generator in a known state. Returns true if f() does not change it.
template <class F> bool draws_nothing(const F& f) {
  const Generator state{11, 7};
  const DrawsFrom draws(state);
  f();
  return default_generator() == state;
}

// Checks that the model's state equals `expected` bit by bit.
void check_state(const Module& model, const TensorMap& expected) {
  const TensorMap state = model.state_dict();
  CHECK(state.size() == expected.size());
  for (const auto& [name, tensor] : expected) {
    INFO(name);
    CHECK(same(state.at(name), tensor));
  }
}

// Makes a model with `make` under SkipInit, and loads the state of a model made without SkipInit.
template <class Make> void check_loaded(const char* what, const Make& make) {
  INFO(what);
  manual_seed(2);
  const auto model = make();
  CHECK(draws_nothing([&] {
    const auto skipped = [&] {
      const SkipInit skip;
      return make();
    };
    auto other = skipped();
    other.load_state_dict(model.state_dict());
    check_state(other, model.state_dict());
  }));
}

}  // namespace

TEST_CASE("under SkipInit the functions of nn::init draw nothing and give NaN of the shape") {
  using Init = Tensor (*)(const Dims&);
  const Init inits[] = {[](const Dims& s) { return init::uniform(s, -1, 1); },
                        [](const Dims& s) { return init::normal(s, 0, 1); },
                        [](const Dims& s) { return init::truncated_normal(s, 1); },
                        [](const Dims& s) { return init::xavier_uniform(s); },
                        [](const Dims& s) { return init::xavier_normal(s); },
                        init::kaiming_normal,
                        init::orthogonal};
  for (const Init f : inits) {
    CHECK(draws_nothing([&] {
      const SkipInit skip;
      const Tensor x = f({3, 5});
      CHECK(x.shape() == Dims{3, 5});
      CHECK(x.dtype() == DType::f32);
      CHECK(all_nan(x));
    }));
    CHECK_FALSE(draws_nothing([&] { CHECK_FALSE(std::isnan(f({3, 5}).sum().item())); }));
  }
  const SkipInit skip;
  CHECK_THROWS_WITH(init::orthogonal({3}), Catch::Matchers::Contains("[3] is not [out, in]"));
  CHECK_THROWS_WITH(Linear(0, 4), Catch::Matchers::Contains("0 -> 4"));
}

TEST_CASE("SkipInit: ones and zeros are there, and models compute NaN until they are loaded") {
  const SkipInit skip;
  Sequential net(Linear(4, 3), BatchNorm(3));
  CHECK(all_nan(parameter(net, "0.weight").tensor));
  CHECK(same(parameter(net, "1.weight").tensor, ones({3})));
  CHECK(same(net.state_dict().at("1.running_var"), ones({3})));
  net.eval();
  CHECK(all_nan(net(ones({2, 4}))));
}

TEST_CASE("a layer that was made under SkipInit equals the layer whose state it loaded") {
  check_loaded("Linear", [] { return Linear(4, 3); });
  check_loaded("Embedding", [] { return Embedding(5, 3); });
  check_loaded("Conv2d", [] { return Conv2d(2, 4, 3); });
  check_loaded("Lstm", [] { return Lstm({.inputs = 3, .hidden = 4}); });
  check_loaded("Gru", [] { return Gru({.inputs = 3, .hidden = 4}); });
  check_loaded("Vit",
               [] { return Vit({.image = 8, .patch = 4, .transformer = {.width = 8, .depth = 2, .heads = 2}}); });
  check_loaded("Gpt",
               [] { return Gpt({.vocab = 5, .context = 4, .transformer = {.width = 8, .depth = 2, .heads = 2}}); });
  for (const streams::Form form : streams::layer_norm_forms())
    check_loaded(name_of(form), [&] {
      return streams::make<Gpt>({.vocab = 5, .context = 4, .transformer = {.width = 8, .depth = 2, .heads = 2}},
                                {.form = form, .storage = streams::Stored::mapped});
    });
}

TEST_CASE("SkipInit ends with its scope, is of its thread and can be switched off within") {
  CHECK_FALSE(SkipInit::is_on());
  try {
    const SkipInit skip;
    CHECK(SkipInit::is_on());
    throw std::runtime_error("x");
  } catch (const std::runtime_error&) {
  }
  CHECK_FALSE(SkipInit::is_on());

  const SkipInit skip;
  bool other = true;
  std::thread([&] { other = SkipInit::is_on(); }).join();
  CHECK_FALSE(other);
  {
    const SkipInit off(false);
    CHECK_FALSE(all_nan(Linear(2, 2).weight()));
  }
  CHECK(all_nan(Linear(2, 2).weight()));
  CHECK_FALSE(std::isnan(streams::haar_rotation(4, 1).sum().item()));  // a rotation is not an initial value
}

TEST_CASE("clone() and shared() leave the default generator's state as it is, even if a constructor draws") {
  manual_seed(3);
  const Masked net;
  const Sequential layers(Linear(4, 3), Conv2d(2, 4, 3));
  CHECK(draws_nothing([&] { check_state(nn::clone(net), net.state_dict()); }));
  CHECK(draws_nothing([&] { check_state(nn::clone(layers), layers.state_dict()); }));
  CHECK(draws_nothing([&] { check_state(nn::shared(layers), layers.state_dict()); }));
  CHECK_FALSE(SkipInit::is_on());
}

TEST_CASE("load_model() and ModelOptions::build() leave the default generator's state as it is, in each form") {
  const TempFolder folder;
  for (const streams::Form form : streams::layer_norm_forms()) {
    INFO(name_of(form));
    manual_seed(4);
    const Gpt model = streams::make<Gpt>(
        {.vocab = 5, .context = 4, .transformer = {.width = 8, .depth = 2, .heads = 2}}, {.form = form});
    const std::string path = folder / "m.safetensors";
    training::save_model(path, model);
    CHECK(draws_nothing([&] { check_state(*training::load_model(path), model.state_dict()); }));
    const training::ModelOptions options(training::load_model_file(path).description);
    CHECK(draws_nothing([&] { options.build(); }));
  }
}
