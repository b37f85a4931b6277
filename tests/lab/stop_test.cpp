// Long computations end after the step in which they are stopped.
#include <atomic>

#include "equivalence/grid/grid.h"
#include "lab/papers/experiment.h"
#include "tests/support/catch.h"

using namespace isonorm;
using namespace isonorm::equivalence;
using namespace isonorm::papers;

// A training that has not begun still calls stop() once; the zoo has 1,040 trainings. If an experiment makes fewer
// calls than this in all, the check of `told` shows that it stopped.
constexpr int kMostTrainings = 2000;

TEST_CASE("experiments: the largest scale ends at the step at which it is stopped") {
  for (const char* name : {"recurrent-norms", "recurrent-centre", "perplexity", "zoo", "translator-norms", "precision",
                           "controls", "bounded-update", "gradient-profile", "first-gradient", "norm-cost"}) {
    const Experiment& e = find_experiment(name);
    std::atomic<int> asked = 0, told = 0;
    const ExperimentResult r = e.run({.full = e.has(kTakesFull),
                                      .progress = [&](const std::string&) { return ++told < 100; },
                                      .stop = [&] { return ++asked > 3; }});
    INFO(name << " was asked " << asked << " times and said " << told);
    CHECK(r.interrupted);
    CHECK(asked.load() >= 4);
    CHECK(asked.load() <= 3 + kMostTrainings);
    CHECK(told.load() <= 2);
  }
}

TEST_CASE("a grid ends at the step at which it is stopped") {
  TableOptions o;
  o.steps = 1000;
  o.columns = {recipe("sgd"), recipe("adam")};
  int last = 0;
  double done = -1;
  const TableResult r = table(o, [&](const TableProgress& p) {
    CHECK(p.done >= done);
    done = p.done;
    return (last = p.step) < 3;
  });
  CHECK(r.interrupted);
  CHECK(last == 3);
  CHECK(done > 0);
}
