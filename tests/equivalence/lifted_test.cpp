// Compressed weights trained like raw weights, in a user's training loop.
#include "equivalence/coordinates/lifted.h"

#include "equivalence/coordinates/parametrisation.h"
#include "optim/adam.h"
#include "optim/clip.h"
#include "optim/sgd.h"
#include "tests/equivalence/room.h"

namespace {

constexpr int64_t kWidth = 8;
constexpr int kSteps = 5;
constexpr double kTolerance = 1e-12;

nn::Gpt gpt(streams::Form form, streams::Stored storage) {
  nn::Gpt m =
      streams::make<nn::Gpt>({.vocab = 11, .context = 6, .transformer = {.width = kWidth, .depth = 1, .heads = 2}},
                             {.form = form, .storage = storage});
  m.to(DType::f64);
  return m;
}

struct Batch {
  Tensor x, y;
};

std::vector<Batch> batches() {
  manual_seed(8);
  std::vector<Batch> all;
  for (int t = 0; t < kSteps; ++t) all.push_back({randint(0, 11, {4, 6}), randint(0, 11, {4, 6})});
  return all;
}

double differentiate(nn::Gpt& m, const Batch& b) {
  for (const Tensor& p : m.parameters()) set_grad(p, {});
  const Tensor loss = cross_entropy(m(b.x), b.y);
  backward(loss);
  return loss.item();
}

// A raw Pre-LN model whose weights have a mean, and the same model in other coordinates.
struct Pair {
  nn::Gpt raw = gpt(streams::Form::layer_norm, streams::Stored::raw), stored;
  streams::Stream stream;
  explicit Pair(streams::Form form)
      : stored(gpt(form, streams::Stored::mapped)), stream(form, kWidth, streams::Stored::mapped) {
    manual_seed(3);
    for (const Tensor& p : raw.parameters()) copy_into(p, randn(p.shape(), {DType::f64}) * 0.3 + 0.15);
    stored.load_state_dict(mapped_state(raw, stream));
  }
};

}  // namespace

TEST_CASE("a lifted AdamW with clipping trains compressed weights as Pre-LN trains") {
  for (auto form : {streams::Form::rms_norm, streams::Form::crms_norm, streams::Form::crms_isometric}) {
    INFO(name_of(form));
    Pair m(form);
    const optim::AdamWOptions o{.lr = 0.01, .weight_decay = 0.1};
    optim::AdamW reference(m.raw.parameters(), o);
    Lifted lifted(streams::named_parameters(m.stored), m.stream,
                  [&](const std::vector<Tensor>& raw) { return std::make_unique<optim::AdamW>(raw, o); });
    for (const Batch& b : batches()) {
      const double loss = differentiate(m.raw, b);
      const double norm = optim::clip_grad_norm(m.raw.parameters(), 0.3);
      reference.step();
      lifted.zero_grad();
      CHECK(std::abs(differentiate(m.stored, b) - loss) < kTolerance * loss);
      lifted.lift();
      CHECK(std::abs(optim::clip_grad_norm(lifted.raw_parameters(), 0.3) - norm) < kTolerance * norm);
      lifted.step();
    }
    const TensorMap expected = mapped_state(m.raw, m.stream);
    for (const streams::NamedParameter& p : streams::named_parameters(m.stored))
      if (p.blind_end == p.blind_begin) {
        INFO(p.name);
        check_close(p.tensor, expected.at(p.name), 10 * kTolerance);
      }
  }
}

TEST_CASE("corrected gradients: I - 11^T/d for writers, I + 11^T for readers") {
  Pair m(streams::Form::crms_norm);
  differentiate(m.stored, batches()[0]);
  std::vector<Tensor> expected;
  for (const streams::NamedParameter& p : streams::named_parameters(m.stored)) {
    const Tensor g = p.tensor.grad(), total = sum(g, {p.stream_dim}, true);
    expected.push_back(p.role == streams::Role::writer   ? g - total / double(kWidth)
                       : p.role == streams::Role::reader ? g + total
                                                         : g);
  }
  correct_gradients(streams::named_parameters(m.stored), m.stream);
  const auto parameters = m.stored.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) check_close(parameters[i].grad(), expected[i], 1e-14);
}

TEST_CASE("corrected gradients follow clipped momentum where the norm is the raw gradients', and not by their own") {
  for (const bool raw_norm : {true, false}) {
    Pair m(streams::Form::crms_norm);
    const optim::SgdOptions o{.lr = 0.1, .momentum = 0.9};
    optim::Sgd reference(m.raw.parameters(), o), stored(m.stored.parameters(), o);
    double worst = 0;
    for (const Batch& b : batches()) {
      const double loss = differentiate(m.raw, b);
      optim::clip_grad_norm(m.raw.parameters(), 0.3);
      reference.step();
      worst = std::max(worst, std::abs(differentiate(m.stored, b) - loss) / loss);
      const double norm = raw_gradient_norm(streams::named_parameters(m.stored), m.stream);
      correct_gradients(streams::named_parameters(m.stored), m.stream);
      stored.step(optim::clip_factor(raw_norm ? norm : optim::grad_norm(m.stored.parameters()), 0.3));
    }
    if (raw_norm)
      CHECK(worst < kTolerance);
    else
      CHECK(worst > 1e-5);
  }
}

TEST_CASE("raw storage has nothing to lift") {
  nn::Gpt m = gpt(streams::Form::crms_norm, streams::Stored::raw);
  CHECK_THROWS_WITH(Lifted(streams::named_parameters(m), streams::Stream(streams::Form::crms_norm, kWidth),
                           [](const std::vector<Tensor>& raw) { return std::make_unique<optim::Sgd>(raw); }),
                    Contains("raw"));
}
