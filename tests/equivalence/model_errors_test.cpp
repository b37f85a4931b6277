// If a model, its optimizer or its factory throws, the error says which of the two models it was.
#include <stdexcept>

#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "equivalence/compare/compare.h"
#include "nn/linear.h"
#include "optim/sgd.h"
#include "tests/support/catch.h"

namespace {

using namespace isonorm;
using namespace isonorm::equivalence;
using Catch::Matchers::StartsWith;

struct Checked : nn::Module {
  nn::Linear& fc = add("fc", nn::Linear(2, 3));
  int fails_at = -1;  // number of the failing forward, from 0
  int forwards = 0;

 protected:
  Tensor forward(const Tensor& x) override {
    check_io(forwards++ != fails_at, "the table is missing");
    return fc(x);
  }
};

Tensor squares(nn::Module& m, const training::Examples& batch) { return sum(square(m(batch.inputs))); }
training::Examples batch_of(int64_t i) { return {.inputs = full({4, 2}, i + 1), .targets = zeros({4})}; }

// The message of the error that `compare` throws, whose kind must be io.
template <class F> std::string message(const F& compare) {
  try {
    compare();
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::io);
    return e.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("model errors: compare_gradients names the model") {
  const auto said = [](int first, int second) {
    Checked a, b;
    a.fails_at = first, b.fails_at = second;
    return message([&] { compare_gradients(a, b, {}, squares, batch_of, {.points = 2, .inputs = false}); });
  };
  CHECK(said(-1, -1) == "none");
  CHECK(said(0, -1) == "the first model: the table is missing");
  CHECK(said(3, -1) == "the first model: the table is missing");  // a copy of it, made as control
  CHECK(said(-1, 0) == "the second model: the table is missing");
  CHECK(said(-1, 2) == "the second model: the table is missing");
}

TEST_CASE("model errors: an exception of the standard library is nested in an error that names the model") {
  Checked a, b;
  const auto loss = [&](nn::Module& m, const training::Examples& batch) {
    if (&m == &b) throw std::out_of_range("no such row");
    return squares(m, batch);
  };
  try {
    compare_gradients(a, b, {}, loss, batch_of, {.points = 1, .inputs = false});
    FAIL("nothing was thrown");
  } catch (const Error& e) {
    CHECK(e.what() == std::string("the second model: no such row"));
    CHECK_THROWS_AS(std::rethrow_if_nested(e), std::out_of_range);
  }
}

TEST_CASE("model errors: compare_trajectories names the model whose forward, optimizer or maker fails") {
  struct Failing : optim::Optimizer {
    explicit Failing(const std::vector<Tensor>& p) : Optimizer("failing", p.size()) { add_group(p, 0.01); }
    void step(double) override { check_io(false, "no step"); }
  };
  enum class Part { none, forward, step, optimizer, maker };
  const auto said = [](Which fails, Part part) {
    const auto make = [=](Which which) {
      return [=] {
        check_io(part != Part::maker || which != fails, "no model");
        auto m = std::make_unique<Checked>();
        if (part == Part::forward && which == fails) m->fails_at = 0;
        return m;
      };
    };
    const auto optimizer = [=](const std::vector<Tensor>& p, Which which) -> std::unique_ptr<optim::Optimizer> {
      check_io(part != Part::optimizer || which != fails, "no optimizer");
      if (part == Part::step && which == fails) return std::make_unique<Failing>(p);
      return std::make_unique<optim::Sgd>(p, optim::SgdOptions{.lr = 0.01});
    };
    return message([&] {
      compare_trajectories(make(Which::first), make(Which::second), {}, squares, optimizer, batch_of, {.steps = 2});
    });
  };
  CHECK(said(Which::first, Part::none) == "none");
  for (const auto& [which, name] :
       {std::pair{Which::first, "the first model: "}, {Which::second, "the second model: "}}) {
    CHECK(said(which, Part::forward) == text(name, "the table is missing"));
    CHECK(said(which, Part::step) == text(name, "no step"));
    CHECK(said(which, Part::optimizer) == text(name, "no optimizer"));
    CHECK(said(which, Part::maker) == text(name, "no model"));
  }
}
