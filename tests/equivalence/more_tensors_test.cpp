// Comparisons with batches of more than two tensors: the third has weights of the examples, which the objective reads.
#include "autograd/ops/loss.h"
#include "equivalence/compare/shift_blind.h"
#include "optim/sgd.h"
#include "tests/equivalence/small_net.h"

namespace {

constexpr CompareOptions kFew = {.points = 2, .steps = 4};

training::Examples weighted_batch(int64_t point) {
  training::Examples batch = small_batch(point);
  Generator g{78, static_cast<uint64_t>(point) << 20};
  batch.more = {rand({12}, {DType::f64}, g)};
  return batch;
}

// The mean of the examples' weighted losses. For the model `unweighted` the weights are left out.
Objective weighted(const nn::Module* unweighted = nullptr) {
  return [=](nn::Module& m, const training::Examples& e) {
    const Tensor losses = cross_entropy(m(e.inputs), e.targets, {.reduction = Reduction::none});
    return mean(&m == unweighted ? losses : losses * e.more.at(0));
  };
}

const MakeOptimizer kSgd = [](const std::vector<Tensor>& p) {
  return std::make_unique<optim::Sgd>(p, optim::SgdOptions{.lr = 0.1});
};

}  // namespace

TEST_CASE("more tensors: gradients of a weighted loss are compared, and a model that leaves the weights out is found") {
  const auto a = small_net({}), b = small_net({.form = Form::rms_norm}, 5);
  expected(Verdict::equivalent, compare_gradients(*a, *b, {}, weighted(), weighted_batch, kFew));
  expected(Verdict::different, compare_gradients(*a, *b, {}, weighted(b.get()), weighted_batch, kFew));
}

TEST_CASE("more tensors: trajectories of a weighted loss are compared, with one batch for all steps, too") {
  const auto trajectories = [](const Objective& objective, const Batches& batches) {
    return compare_trajectories([] { return small_net({}); }, [] { return small_net({.form = Form::rms_norm}, 4); }, {},
                                objective, kSgd, batches, kFew);
  };
  expected(Verdict::equivalent, trajectories(weighted(), weighted_batch));
  expected(Verdict::equivalent, trajectories(weighted(), [](int64_t) { return weighted_batch(0); }));
  const Objective reads_form = [](nn::Module& m, const training::Examples& e) {
    const bool is_b = dynamic_cast<SmallNet&>(m).on.form == Form::rms_norm;
    return weighted(is_b ? &m : nullptr)(m, e);
  };
  expected(Verdict::different, trajectories(reads_form, weighted_batch));
}

TEST_CASE("more tensors: shift-blindness is looked for with a weighted loss") {
  const auto net = small_net({});
  CHECK(check_shift_blind(*net, weighted(), weighted_batch, {.points = 2}).convertible());
}
