// Quantities that only rounding moves, and quantities that are zero in exact arithmetic.
#include "equivalence/compare/compare.h"

#include "equivalence/compare/own_training.h"
#include "equivalence/lockstep/made_examples.h"
#include "lab/probes/architecture.h"
#include "optim/sgd.h"
#include "tests/equivalence/small_net.h"

namespace {

// Two gradients: 1 and a given number.
struct Given : OwnTraining {
  struct TwoWeights : nn::Module {
    nn::Parameter& large = add_parameter("large", ones({1}, {DType::f64}));
    nn::Parameter& small = add_parameter("small", ones({1}, {DType::f64}));
  };
  static Tensor loss(nn::Module& m, const Examples& batch) {
    return sum(m.parameters()[0]) + sum(m.parameters()[1] * batch.inputs);
  }
  Given() : Given(std::make_unique<TwoWeights>()) {}
  explicit Given(std::unique_ptr<TwoWeights> m)
      : OwnTraining(*m, streams::named_parameters(*m), loss, 1), own(std::move(m)) {
    train_with(std::make_unique<optim::Sgd>(model().parameters(), optim::SgdOptions{.lr = 1}), 0);
  }
  Given& at(double gradient) {
    differentiate({tensor({gradient}), {}});
    return *this;
  }
  std::unique_ptr<TwoWeights> own;
};

}  // namespace

TEST_CASE("weights that noise alone has moved are not compared, all others are") {
  struct Step {
    double a, b, control;  // gradients
  };
  // The deviation of the weights after these steps.
  const auto deviation = [](std::initializer_list<Step> steps) {
    Given a, b, control;
    double last = 0;
    for (const Step& s : steps) {
      // Like a rule such as Adam's, makes a full step from noise.
      a.at(s.a), b.at(s.b), control.at(s.control);
      a.note_control(control);
      for (Given* g : {&a, &b, &control}) {
        g->update(0);
        const double small = g == &a ? s.a : g == &b ? s.b : s.control;
        if (small != 0) g->own->small.mutable_data<double>()[0] -= small > 0 ? 0.1 : -0.1;
      }
      last = b.weight_deviation(a);
    }
    return last;
  };
  CHECK(deviation({{1e-14, -1e-14, 2e-14}}) == 0);
  CHECK(deviation({{1e-14, -1e-14, 2e-14}, {-1e-14, 1e-15, 1e-14}}) == 0);
  CHECK(deviation({{1e-14, -1e-14, 1.1e-14}}) > 0.1);                  // the control moves less than its size
  CHECK(deviation({{1e-12, -1e-12, -1e-12}}) > 0.1);                   // more than 1000 eps of the other gradient
  CHECK(deviation({{0.5, -0.5, 0.5}, {1e-14, -1e-14, 2e-14}}) > 0.1);  // after a real gradient
  CHECK(deviation({{1e-14, -1e-14, 2e-14}, {0.5, -0.5, 0.5}}) > 0.1);  // before a real gradient
  CHECK(deviation({{0, 1e-14, 0}}) > 0.05);                            // the reference has no noise: its gradient is 0
}

TEST_CASE("noise is what any control moves by its own size, at this step") {
  Given a, b, control;
  const auto deviation = [&] { return b.gradient_deviation(a); };
  a.at(1e-14), b.at(-1e-14);
  CHECK(deviation() == 2);  // without controls
  a.note_control(control.at(1.2e-14));
  CHECK(deviation() == 2);
  a.note_control(control.at(2e-14));
  a.note_control(control.at(1e-14));  // the last control does not move
  CHECK(deviation() == 2e-14);
  b.at(NAN);
  CHECK(std::isnan(deviation()));
  a.at(1e-14), b.at(-1e-14);  // the next step
  CHECK(deviation() == 2);
  a.at(3e-13), b.at(-3e-13);  // above 1000 eps of the largest gradient
  a.note_control(control.at(-3e-13));
  CHECK(deviation() == 2);
}

TEST_CASE("what is zero in exact arithmetic moves by its own size with an ulp of the weights, and nothing else does") {
  // Normally the rows of key biases are known to be zero (blind rows). Here note_control() is not told.
  struct Seen : OwnTraining {
    using OwnTraining::moved_;
    Seen(nn::Module& model, const std::vector<streams::NamedParameter>& parameters, const Objective& loss)
        : OwnTraining(model, parameters, loss, 1) {
      noise_share_ = INFINITY;  // measures every gradient
    }
  };
  for (const DType dtype : {DType::f64, DType::f32}) {
    double least_zero = INFINITY, most_other = 0;
    for (const char* name : {"gpt1", "gpt2", "gpt6", "vit2", "vit8"})
      for (uint64_t seed : {1, 2, 3}) {
        const TrainingOptions o = training_options(architecture(name), dtype, seed);
        const auto model = initial_model(o);
        Generator generator{seed, 0};
        draw_parameters(model->parameters(), generator);
        const Examples batch = made_examples(o, seed);
        const std::vector<streams::NamedParameter> parameters = streams::named_parameters(*model);
        Seen first(*model, parameters, cross_entropy_of);
        first.differentiate(batch);
        for (uint64_t c = 1; c <= 4; ++c) {
          const Restore restore(*model);
          move_by_one_ulp(*model, c);
          OwnTraining control(*model, parameters, cross_entropy_of, 1);
          control.differentiate(batch);
          first.note_control(control, false);
        }
        size_t part = 0;
        for (const streams::NamedParameter& p : parameters) {
          if (p.blind_begin > 0) most_other = std::max(most_other, first.moved_[part++]);
          if (p.blind_end > p.blind_begin) least_zero = std::min(least_zero, first.moved_[part++]);
          if (p.blind_end == p.blind_begin || p.blind_end < p.tensor.size(0))
            most_other = std::max(most_other, first.moved_[part++]);
        }
        CHECK(part == first.moved_.size());
      }
    INFO(name_of(dtype));
    CHECK(least_zero > 0.25);
    CHECK(most_other < 2000 * epsilon(dtype));
  }
}
