// GRU and LSTM against PyTorch's: outputs, last states, and the gradients of rows, first states and weights
// (tests/fixtures/torch_recurrent.py).
#include "autograd/engine.h"
#include "io/safetensors.h"
#include "nn/recurrent/recurrent.h"
#include "tests/nn/models.h"
#include "tests/support/compare.h"

using namespace isonorm;

namespace {

// Cells and steps are 5 x 2 at most, each a handful of sums of 8 products at most; a gradient sums over some 10 of
// them.
constexpr double kTolerance = 64 * 10 * 0x1p-52;

void check_case(const TensorMap& fixture, bool lstm, int64_t layers, bool both) {
  const std::string of = text(lstm ? "lstm" : "gru", "_", layers, both ? "_both" : "", "/");
  const nn::RecurrentOptions options{.inputs = 3, .hidden = 4, .layers = layers, .bidirectional = both};
  std::unique_ptr<nn::Recurrent> layer;
  if (lstm)
    layer = std::make_unique<nn::Lstm>(options);
  else
    layer = std::make_unique<nn::Gru>(options);
  layer->to(DType::f64);
  const TensorMap weights = nn::below(fixture, of + "weight/");
  layer->load_state_dict(weights);

  const Tensor x = require_grad(fixture.at(of + "x"));
  std::vector<Tensor> state;
  for (int i = 0; i < (lstm ? 2 : 1); ++i) state.push_back(require_grad(fixture.at(text(of, "state", i))));
  const nn::RecurrentResult result = (*layer)(x, {.state = state});
  Tensor total = sum(result.output * fixture.at(of + "cotangent/output"));
  INFO(of);
  check_close(result.output, fixture.at(of + "output"), kTolerance);
  REQUIRE(result.state.size() == state.size());
  for (size_t i = 0; i < state.size(); ++i) {
    check_close(result.state[i], fixture.at(text(of, "last", i)), kTolerance);
    total = total + sum(result.state[i] * fixture.at(text(of, "cotangent/last", i)));
  }
  backward(total);
  check_close(x.grad(), fixture.at(of + "gradient/x"), kTolerance);
  for (size_t i = 0; i < state.size(); ++i)
    check_close(state[i].grad(), fixture.at(text(of, "gradient/state", i)), kTolerance);
  CHECK(layer->parameters().size() == weights.size());
  for (const nn::NamedParameter& p : layer->named_parameters()) {
    INFO(p.name);
    check_close(p.tensor.grad(), fixture.at(of + "gradient/" + p.name), kTolerance);
  }
}

}  // namespace

TEST_CASE("GRU and LSTM have PyTorch's outputs, last states and gradients") {
  const TensorMap fixture = load_safetensors("tests/fixtures/recurrent.safetensors");
  for (const bool lstm : {false, true})
    for (const int64_t layers : {1, 2})
      for (const bool both : {false, true}) check_case(fixture, lstm, layers, both);
}
