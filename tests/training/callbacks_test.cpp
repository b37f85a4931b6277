// Ready callbacks of a loop, the test of a batch, the range test of rates, and intervals as words.
#include "training/steps/callbacks.h"

#include <cmath>
#include <thread>

#include "autograd/ops/create.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "core/error.h"
#include "nn/linear.h"
#include "optim/adam.h"
#include "optim/schedule.h"
#include "optim/sgd.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"
#include "training/records/held_out.h"
#include "training/run/saved_training.h"
#include "training/steps/lr_range.h"

using namespace isonorm;
using namespace isonorm::training;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

TEST_CASE("an interval is a number of steps or a time") {
  CHECK(Interval::read("0")->steps == 0);
  CHECK(Interval::read("500")->steps == 500);
  CHECK(Interval::read("30s")->seconds == 30);
  CHECK(Interval::read("10m")->seconds == 600);
  CHECK(Interval::read("1.5h")->seconds == 5400);
  for (const char* wrong : {"", "m", "-1", "-1m", "0s", "1 m", "10d", "1e3s", "nanm", "infh", "99999999999"})
    CHECK_FALSE(Interval::read(wrong));
}

TEST_CASE("loop: a callback due after a time is called at the first step after it") {
  nn::Linear model(1, 1);
  optim::Sgd sgd(model.parameters());
  Step step(model, sgd, [](nn::Module& m, const Examples& e) { return sum(m(e.inputs)); });
  Loop loop(
      step,
      [](int64_t) {
        return Examples{ones({1, 1}), ones({1, 1})};
      },
      [](int64_t) { return 0.0; });
  std::vector<int> calls;
  loop.every(40ms, [&](const TrainingStep& s) { return calls.push_back(s.step), true; });
  loop.every(1h, [&](const TrainingStep&) { return false; });
  loop.every(1, [&](const TrainingStep& s) {
    if (s.step == 3 || s.step == 7) std::this_thread::sleep_for(60ms);
    return true;
  });
  CHECK(loop.run(7));
  CHECK(std::ranges::count(calls, 4) == 1);  // behind the wait of step 3
  CHECK(loop.run(9, 7));
  CHECK(std::ranges::count(calls, 8) == 1);
  CHECK_THROWS_AS(loop.every(-1s, {}), Error);
}

TEST_CASE("the best loss, and how long to wait for a better one") {
  BestLoss best(2);
  CHECK_FALSE(best.over());
  CHECK(best.take(10, 3));
  CHECK(best.take(20, 2));
  CHECK_FALSE(best.take(30, 2));  // not less
  CHECK_FALSE(best.over());
  CHECK_FALSE(best.take(40, NAN));
  CHECK(best.over());
  CHECK((best.step() == 20 && best.loss() == 2 && best.since() == 2 && best.last_step() == 40));
  BestLoss again(3);
  REQUIRE(again.read(best.written()));
  CHECK((again.step() == 20 && again.loss() == 2 && again.since() == 2 && again.last_step() == 40));
  CHECK_FALSE(again.over());
  CHECK(again.take(50, 0.1));
  CHECK(BestLoss(1).read(again.written()));
  for (const char* wrong : {"", "2 20 2", "2 20 2 40 1", "inf 1 1 2", "2 0 1 2", "2 20 -1 40", "2 20 1 19", "x 1 1 2"})
    CHECK_FALSE(again.read(wrong));
  BestLoss patient;  // without end
  for (int t = 1; t < 100; ++t) patient.take(t, 1);
  CHECK_FALSE(patient.over());
}

TEST_CASE("a saved training resumes with the same bits: weights, optimizer, random numbers, the smallest loss") {
  const TempFolder f;
  struct Run {
    nn::Linear model{4, 3};
    optim::AdamW adamw{model.parameters()};
    BestLoss best{9};
    Step step{model, adamw,
              [](nn::Module& m, const Examples& e) { return cross_entropy(dropout(m(e.inputs), 0.5), e.targets); }};
    Loop loop{step,
              [](int64_t t) {
                Generator g{3, static_cast<uint64_t>(t)};
                return Examples{randn({2, 4}, {}, g), randint(0, 3, {2}, kCpu, g)};
              },
              optim::Schedule{.peak = 0.1, .steps = 9}};
    Run() {
      loop.every(2, [&](const TrainingStep& s) { return best.take(s.step, s.loss), true; });
    }
    std::vector<float> weights() const { return model.parameters()[0].to_vector<float>(); }
  };
  manual_seed(7);
  Run whole;
  SavedTraining all(f / "whole", whole.model, whole.adamw, whole.best);
  CHECK(all.done() == 0);
  CHECK(whole.loop.run(9));
  CHECK(whole.loop.step() == 9);

  manual_seed(7);
  Run begun;
  SavedTraining saved(f / "part", begun.model, begun.adamw, begun.best);
  begun.loop.every(1, [](const TrainingStep& s) { return s.step < 5; });
  begun.loop.every(5, std::ref(saved));
  CHECK_FALSE(begun.loop.run(9));
  CHECK(begun.loop.step() == 5);

  manual_seed(8);
  Run resumed;
  SavedTraining again(f / "part", resumed.model, resumed.adamw, resumed.best);
  CHECK(again.done() == 5);
  CHECK(resumed.best.written() == begun.best.written());
  CHECK(resumed.loop.run(9, again.done()));
  CHECK(resumed.weights() == whole.weights());
  CHECK(resumed.best.written() == whole.best.written());
  all.save(9), again.save(resumed.loop.step());
  CHECK(read_bytes(f / "whole") == read_bytes(f / "part"));
  CHECK(std::filesystem::exists(f / "part.previous"));

  nn::Linear other(4, 4);
  optim::AdamW adamw(other.parameters());
  BestLoss best;
  CHECK_THROWS_WITH(SavedTraining(f / "part", other, adamw, best), Contains("part: "));
  optim::Adam adam(resumed.model.parameters());  // whose state has the same names
  CHECK_THROWS_WITH(SavedTraining(f / "part", resumed.model, adam, best),
                    Contains("part: saved training: other contents: 'optimizer' is 'adamw', expected adam"));
  write_text(f / "part", "");  // then it is the one before, which stays when the next cannot be written
  SavedTraining earlier(f / "part", resumed.model, resumed.adamw, resumed.best);
  CHECK(earlier.done() == 5);
  const std::vector<uint8_t> previous = read_bytes(f / "part.previous");
  earlier.save(6);
  CHECK(read_bytes(f / "part.previous") == previous);
  std::filesystem::remove(f / "part");
  CHECK_THROWS_WITH(SavedTraining(f / "part", resumed.model, resumed.adamw, resumed.best),
                    Contains("part: it is gone, but "));
  CHECK(read_bytes(f / "part.previous") == previous);
}

TEST_CASE("evaluate: mean loss and right predictions of the targets that count, in evaluation mode") {
  struct Net : nn::Module {
    Tensor forward(const Tensor& x) override { return training() ? x * NAN : x; }
  } net;
  const Tensor logits = from_vector(std::vector<double>{1, 2, 0, 5, 1, 1, 0, 0, 3}, {3, 3});
  const Examples batch{logits, from_vector(std::vector<int64_t>{1, -100, 0}, {3})};
  const Evaluation e = evaluate(net, batch, 12);
  CHECK((e.step == 12 && e.right == 1 && e.predictions == 2));
  const double first = std::log(std::exp(1) + std::exp(2) + 1) - 2, last = std::log(2 + std::exp(3));
  CHECK(std::abs(e.loss - (first + last) / 2) < 1e-15 * 8);
  CHECK(net.training());
  net.eval();
  evaluate(net, batch, 12);
  CHECK_FALSE(net.training());
}

TEST_CASE("the range test: rates grow by one factor, and the suggestion has the steepest smoothed loss") {
  LrRange range(1e-4, 1, 5);
  for (int t = 0; t < 5; ++t) CHECK(range.lr(t) == Approx(std::pow(10.0, t - 4)));
  LrRange flat(1e-3, 1, 50);
  for (int t = 0; t < 50; ++t) CHECK(flat.take(2 + 0.01 * t));
  CHECK_FALSE(flat.steepest());

  // A loss that falls fastest between steps 60 and 80 and explodes behind 150.
  LrRange fall(1e-6, 10, 300);
  const auto loss = [](int t) { return t < 60 ? 5.0 : t < 80 ? 5 - 0.2 * (t - 60) : t < 150 ? 1.0 : 1e3; };
  double sum = 0;
  int taken = 0;
  for (bool go_on = true; go_on; ++taken) {
    go_on = fall.take(loss(taken));
    sum = 0.98 * sum + 0.02 * loss(taken);
    CHECK(fall.smoothed().back() == Approx(sum / (1 - std::pow(0.98, taken + 1))));
  }
  CHECK((taken > 150 && taken < 160));
  REQUIRE(fall.steepest());
  const auto& a = fall.smoothed();
  const auto falls = [&](int t) { return a[static_cast<size_t>(t - 15)] - a[static_cast<size_t>(t + 15)]; };
  int steepest = 45;
  for (int t = 46; t < 135; ++t)
    if (falls(t) > falls(steepest)) steepest = t;
  CHECK(*fall.steepest() == steepest);
  CHECK((steepest > 60 && steepest < 90));
  LrRange noisy(1e-3, 1, 100);  // the first losses are noise: their fall is none
  for (int t = 0; t < 100; ++t) noisy.take(t == 0 ? 9 : 2 - 0.01 * std::max(0, t - 50));
  REQUIRE(noisy.steepest());
  CHECK(*noisy.steepest() >= 15);
  CHECK_FALSE(LrRange(1e-3, 1, 5).take(NAN));
  CHECK_THROWS_AS(LrRange(1, 0.1, 5), Error);
  CHECK_THROWS_AS(LrRange(0, 1, 5), Error);
  CHECK_THROWS_AS(LrRange(0.1, 1, 1), Error);
}
