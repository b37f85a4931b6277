// Learning rates of several groups, options of a running optimizer, moved optimizers, and states that are copies.
#include "autograd/engine.h"
#include "autograd/ops/create.h"
#include "autograd/ops/reduce.h"
#include "core/memory/allocator.h"
#include "io/checkpoint.h"
#include "nn/linear.h"
#include "optim/adam.h"
#include "optim/ema.h"
#include "optim/muon.h"
#include "optim/sgd.h"
#include "tests/optim/cases.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_device.h"
#include "training/run/saved_training.h"
#include "training/steps/loop.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using test::on_test_device;

namespace {

Tensor weight(double value) { return require_grad(on_test_device(std::vector<double>{value}, {1})); }

void step_with(optim::Optimizer& opt, const std::vector<Tensor>& weights, double gradient) {
  for (const Tensor& w : weights) set_grad(w, on_test_device(std::vector<double>{gradient}, {1}));
  opt.step();
}

using Values = std::vector<double>;
Values first_state(const optim::Optimizer& opt) { return opt.state_dict().at("0.exp_avg").to_vector<double>(); }

}  // namespace

TEST_CASE("a rate is the first group's; the others keep their ratio to it, in step(), Loop and set_lr()") {
  const Tensor body = weight(1), head = weight(1), tail = weight(1);
  optim::Sgd opt({{{head}, {.lr = 0.5}}, {{body}, {.lr = 0.125}}, {{tail}, {.lr = 0}}});
  opt.set_lr(2);
  CHECK(Values{opt.lr(0), opt.lr(1), opt.lr(2)} == Values{2, 0.5, 0});
  step_with(opt, {head, body, tail}, 0.25);
  CHECK(Values{head.item(), body.item(), tail.item()} == Values{1 - 2 * 0.25, 1 - 0.5 * 0.25, 1});
  opt.set_lr(1, 8);  // until the next set_lr(lr)
  CHECK(Values{opt.lr(0), opt.lr(1)} == Values{2, 8});
  opt.set_lr(4);
  CHECK(Values{opt.lr(0), opt.lr(1)} == Values{4, 1});
  CHECK_THROWS_WITH(opt.set_lr(-1), "sgd: lr is -1, expected a finite number from 0");
  CHECK(Values{opt.lr(0), opt.lr(1)} == Values{4, 1});

  nn::Linear net(1, 1);
  for (const Tensor& p : net.parameters()) fill(detach(p), 1);
  optim::Sgd two({{{net.weight}, {.lr = 1}}, {{net.bias}, {.lr = 0.25}}});
  training::Step step(net, two, [](nn::Module& m, const training::Examples& e) { return sum(m(e.inputs)); });
  const training::Examples batch{ones({1, 1}), ones({1})};
  training::Loop loop(
      step, [&](int64_t) { return batch; }, [](int64_t) { return 0.5; });
  loop.run(1);
  CHECK(net.weight.item() == 1 - 0.5);
  CHECK(net.bias.item() == 1 - 0.125);
}

TEST_CASE("the ratios of the groups' rates go with the state") {
  const Tensor a = weight(1), b = weight(1), c = weight(1), d = weight(1);
  optim::AdamW from({{{a}, {.lr = 1}}, {{b}, {.lr = 0.25}}}), to({{{c}, {.lr = 1}}, {{d}, {.lr = 1}}});
  const TensorMap state = from.state_dict();
  CHECK(state.find("group.0.lr_factor") == nullptr);  // a single group needs no factor
  to.load_state_dict(state);
  to.set_lr(2);
  CHECK(to.lr(1) == 0.5);
  optim::AdamW older({{{c}, {.lr = 1}}, {{d}, {.lr = 0.125}}});
  older.load_state_dict(with(state, "group.1.lr_factor", {}));  // a file of an older version, without factors
  older.set_lr(2);
  CHECK(older.lr(1) == 0.25);
  CHECK_THROWS_WITH(to.load_state_dict(with(state, "group.1.lr_factor", tensor({-1.0}))),
                    "adamw: group.1.lr_factor is -1, expected a number from 0");
  optim::AdamW zero({{{c}, {.lr = 0}}, {{d}, {.lr = 1}}});
  CHECK_THROWS_WITH(zero.set_lr(1),
                    "adamw: lr is 1 for group 0 and inf times as much for group 1; set_lr(group, lr) sets "
                    "each");
  zero.load_state_dict(zero.state_dict());
}

TEST_CASE("an optimizer takes back its own state whole, and an average does") {
  const Tensor w = weight(1);
  optim::Adam opt({w}, {.lr = 0.1});
  step_with(opt, {w}, 1);
  const TensorMap after_one = opt.state_dict();
  for (int i = 0; i < 2; ++i) step_with(opt, {w}, 3);
  opt.load_state_dict(after_one);
  CHECK(opt.state_dict().at("0.step").item() == 1);
  CHECK(first_state(opt)[0] == Approx(0.1).epsilon(1e-15));  // (1 - beta1) 1
  CHECK(opt.state_dict().at("0.exp_avg_sq").item() == Approx(0.001).epsilon(1e-13));

  const Tensor x = weight(1);
  optim::Ema ema({x}, {.decay = 0.5});
  const TensorMap at_first = ema.state_dict();
  copy_into(detach(x), on_test_device(std::vector<double>{3}, {1}));
  ema.update();
  CHECK(ema.averages()[0].item() == 2);
  ema.load_state_dict(at_first);
  CHECK(ema.averages()[0].item() == 1);
  CHECK(ema.state_dict().at("step").item() == 0);
}

TEST_CASE("saving a training makes no copy of the optimizer's state") {
  const TempFolder folder;
  nn::Linear net(1024, 1024);
  optim::AdamW opt(net.parameters());
  for (const Tensor& p : net.parameters()) set_grad(p, detach(p));
  opt.step();
  opt.zero_grad();
  training::BestLoss best;
  training::SavedTraining saved(folder / "c", net, opt, best);
  const int64_t state = int64_t{2} * 1024 * 1025 * 4, before = host_allocator().stats().current;
  host_allocator().reset_peak();
  saved.save(1);
  CHECK(host_allocator().stats().peak - before < state / 4);
}

TEST_CASE("weight decay and momentum of a running optimizer can be set") {
  const Tensor w = weight(2);
  optim::Sgd sgd({w}, {.lr = 0.5, .momentum = 0.5});
  step_with(sgd, {w}, 1);  // b = 1, w = 1.5
  CHECK(w.item() == 1.5);
  sgd.set_momentum(0, 0.25);
  sgd.set_weight_decay(0, 2);
  step_with(sgd, {w}, 1);  // g = 1 + 2 * 1.5, b = 0.25 + 4
  CHECK(w.item() == 1.5 - 0.5 * 4.25);
  CHECK_THROWS_WITH(sgd.set_momentum(0, 0), "sgd: momentum is 0, expected a number in (0, 1)");
  CHECK_THROWS_WITH(sgd.set_weight_decay(1, 0), "sgd: there is no group 1 among 1");
  CHECK_THROWS_WITH(sgd.set_weight_decay(0, -1), "sgd: weight_decay is -1, expected a finite number from 0");
  optim::Sgd plain({w}, {.lr = 0.5});
  CHECK_THROWS_WITH(plain.set_momentum(0, 0.5), "sgd: group 0 was made without momentum and has no buffer for it");
  optim::AdamW adamw({w}, {.lr = 0.5, .weight_decay = 0});
  CHECK_THROWS_WITH(adamw.set_momentum(0, 0.5), "adamw: there is no momentum to set");
  adamw.set_weight_decay(0, 0.5);
  const double before = w.item();
  step_with(adamw, {w}, 0);
  CHECK(w.item() == before * (1 - 0.5 * 0.5));
  for (const OptimizerCase& c : optimizer_cases()) {
    const Tensor m = require_grad(on_test_device(std::vector<double>{1, 2, 3, 4}, {2, 2}));
    INFO(c.name);
    CHECK_NOTHROW(c.make({m})->set_weight_decay(0, 0.5));
  }
}

TEST_CASE("optimizers can be moved, into a vector too, and go on") {
  std::vector<Tensor> weights, alone;
  std::vector<optim::Adam> moved;
  std::vector<std::unique_ptr<optim::Adam>> same;
  for (int i = 0; i < 3; ++i) {
    weights.push_back(weight(i)), alone.push_back(weight(i));
    moved.emplace_back(std::vector{weights.back()});
    same.push_back(std::make_unique<optim::Adam>(std::vector{alone.back()}));
    for (int j = 0; j <= i; ++j) step_with(moved[j], {weights[j]}, 1 + i), step_with(*same[j], {alone[j]}, 1 + i);
  }
  moved[0] = std::move(moved[2]);
  step_with(moved[0], {weights[2]}, 1), step_with(*same[2], {alone[2]}, 1);
  for (int i = 0; i < 3; ++i) CHECK(weights[i].item() == alone[i].item());
  static_assert(!std::is_copy_constructible_v<optim::Adam>);
  optim::Muon muon = optim::Muon({require_grad(on_test_device(std::vector<double>{1, 2}, {1, 2}))});
  CHECK(muon.groups() == 1);
}
