// Mistakes that people make in ports, planted one at a time. The comparison must name the mistake as cause, or name its
// place and no cause. The table: test_equivalence "mistakes: the table*" -s
#include <set>

#include "tests/equivalence/planted.h"
#include "tests/equivalence/port_optimizer.h"
#include "tests/equivalence/port_stream.h"

namespace {

const Planted kForward[] = {
    {"ln1 eps", "forward", "another eps: the second model has 1e-06, the first 1e-05; with the same in ln1",
     "in ln1 is the first"},
    {"all eps", "forward", "another eps: the second model has 1e-06, the first 1e-05; with the same in all 3 norms",
     "in ln1 is the first"},
    {"ln2 unbiased", "forward", "another divisor: the second model divides by 7, the first by 8; with the same in ln2",
     "in ln2 is the first"},
    {"lnf rms", "forward", "another norm: the second model computes rms_norm; with the same in lnf",
     "in lnf is the first"},
    {"ln1 gain+1", "forward", "another use of the gain: the second model multiplies by gain + 1",
     "in ln1 is the first"},
    {"ln2 no bias", "forward", "", "in ln2 is the first"},
    {"ln2 eps out", "forward", "", "in ln2 is the first"},
    {"ln1 over time", "forward", "", "in ln1 is the first"},
    {"ln2 twice", "forward", "", "in ln2 is the first"},
    {"no final norm", "forward", "", "in lnf is the first"},
    {"post norm", "forward", "", "in ln1 is the first"},
    {"scale 1/d", "forward", "", "`mul` [4, 2, 5, 5] after k is the first"},
    {"no scale", "forward", "", "which is 2 times it"},
    {"scale of width", "forward", "", "which is 0.707107 times it"},
    {"softmax over queries", "forward", "", "`softmax` [4, 2, 5, 5] after k is the first"},
    {"q and k exchanged", "forward", "", "agree up to `mul` [4, 2, 5, 5] after k"},
    {"heads as they lie", "forward", "", "agree up to `permute` [4, 5, 2, 4] after q"},
    {"v of k", "forward", "", "in v is the first"},
    {"merged as they lie", "forward", "", "agree up to `reshape` [4, 5, 8] after v"},
    {"no bias of o", "forward", "", "in o is the first"},
    {"bias of o per head", "forward", "", "`add` [4, 5, 8] after o is the first"},
    {"dropout in training", "forward", "a part that acts in training only", "`softmax` [4, 2, 5, 5] after k and"},
    {"rotary base", "forward", "", "`rotary` [4, 5, 2, 4] after q is the first"},
    {"rotary halves", "forward", "", "`rotary` [4, 5, 2, 4] after q is the first"},
    {"rotary first", "forward", "", "`rotary` [4, 5, 2, 4] after q is the first"},
    {"rotary of q alone", "forward", "", "`rotary` [4, 5, 2, 4] after k is the first"},
    {"rotary back", "forward", "", "`rotary` [4, 5, 2, 4] after q is the first"},
    {"rotary of v", "forward", "", "and `permute` [4, 2, 5, 4] after v: `matmul`"},
    {"no mask", "forward", "", "`where` [4, 2, 5, 5] after k is the first"},
    {"mask one ahead", "forward", "", "`where` [4, 2, 5, 5] after k is the first"},
    {"mask transposed", "forward", "", "`where` [4, 2, 5, 5] after k is the first"},
    {"mask value", "forward", "", "`where` [4, 2, 5, 5] after k is the first"},
    {"mask times scores", "forward", "", "`where` [4, 2, 5, 5] after k is the first"},
    {"mask after softmax", "forward", "", "`where` [4, 2, 5, 5] after k is the first"},
    {"tanh gelu", "forward", "", "`gelu` [4, 5, 12] after up is the first"},
    {"relu", "forward", "", "`gelu` [4, 5, 12] after up is the first"},
    {"silu", "forward", "", "`gelu` [4, 5, 12] after up is the first"},
    {"no activation", "forward", "", "`gelu` [4, 5, 12] after up is the first"},
    {"clamped", "forward", "", "`gelu` [4, 5, 12] after up is the first"},
    {"no bias of up", "forward", "", "in up is the first"},
    {"no residual", "forward", "", "`add` [4, 5, 8] after down is the first"},
    {"residual halved", "forward", "", "`add` [4, 5, 8] after down is the first"},
    {"residual twice", "forward", "", "`add` [4, 5, 8] after down is the first"},
    {"residual of norm", "forward", "", "`add` [4, 5, 8] after o is the first"},
    {"no embedding scale", "forward", "", "`embedding` [4, 5, 8] of tok, which is 0.353553 times it"},
    {"positions twice", "forward", "", "`add` [4, 5, 8] of pos is the first"},
    {"no positions", "forward", "", "`add` [4, 5, 8] of pos is the first"},
    {"positions shifted", "forward", "", "`add` [4, 5, 8] of pos is the first"},
    {"last position", "forward", "", "`add` [4, 5, 8] of pos is the first"},
    {"sum for mean", "forward", "a factor of the loss: the loss and all 20 gradients of the second model are 20 times",
     ""},
    {"mean of rows", "forward", "a factor of the loss: the loss and all 20 gradients of the second model are 5 times",
     ""},
    {"smoothed", "forward", "", "`cross_entropy` [] after tok is the first"},
    {"shifted targets", "forward", "", "`cross_entropy` [] after tok is the first"},
    {"padding counted", "forward", "", "`cross_entropy` [] after tok is the first"},
    {"uneven parts", "forward", "", ""},
    {"penalty", "forward", "", "every result of the first, its loss among them"},
    {"penalty unseen", "a term of the loss that has no gradient", "", "every result of the first, its loss among them"},
    {"third call", "forward", "a model that does not repeat itself", ""},
};

const Planted kBackward[] = {
    {"ln1 no mean", "backward", "", "agree down to `layer_norm` [4, 5, 8] of ln1.weight in ln1 and"},
    {"lnf no proj", "backward", "", "agree down to `layer_norm` [4, 5, 8] of lnf.weight in lnf:"},
    {"ln2 mean cut", "backward", "", "agree down to `layer_norm` [4, 5, 8] of ln2.weight in ln2 and"},
    {"ln2 var cut", "backward", "", "agree down to `layer_norm` [4, 5, 8] of ln2.weight in ln2 and"},
    {"ln1 gain row", "backward", "", "=ln1.weight"},
    {"probabilities cut", "backward", "", "the next gradient, of `softmax` [4, 2, 5, 5] after k"},
    {"softmax rule", "backward", "", "agree down to `softmax` [4, 2, 5, 5] after k"},
    {"v twice back", "backward", "", "agree down to `linear` [4, 5, 8] of v.weight in v"},
    {"rotary rule", "backward", "", "agree down to `rotary` [4, 5, 2, 4] after q"},
    {"gelu rule", "backward", "", "agree down to `gelu` [4, 5, 12] after up"},
    {"residual cut", "backward", "", "the next gradient, of `add` [4, 5, 8] of pos"},
    {"padding row", "backward", "", "=tok"},
    {"rows cut", "backward", "", "=tok"},
    {"rows twice", "backward", "", "=tok"},
    {"rows by frequency", "backward", "", "=tok"},
    {"head cut", "backward", "", "=tok"},
    {"gradient halved", "backward", "a factor in the backward: all 20 gradients of the second model are 0.5 times", ""},
    {"first part cut", "backward", "", ""},
};

const Planted kTrained[] = {
    {"rate twice", "update", "another learning rate: the second model has 0.004, the first 0.002", ""},
    {"no warming", "update", "another learning rate: the second model has 0.01, the first 0.002", ""},
    {"schedule late", "update", "its rate is 0", ""},
    {"schedule drops", "update", "", "step 4"},
    {"beta1", "update", "", "step 2"},
    {"beta2", "update", "", "step 2"},
    {"eps", "update", "another eps of Adam: the second model has 1e-06, the first 1e-08", ""},
    {"eps inside", "update", "", "step 1"},
    {"no decay", "update", "another weight decay: the second model takes off 0 of each weight", ""},
    {"no correction", "update", "", "step 1"},
    {"correction ahead", "update", "", "step 1"},
    {"table left out", "update", "weights that do not move: the second model's update leaves tok as before", "=tok"},
    {"clipped", "update", "", "step 1"},
    {"coupled", "update", "another kind of weight decay: the second model adds it to the gradient", ""},
    {"vectors not decayed", "update", "takes off 0 of each weight per step, the first 0.0002, in ln1.weight and 8 more",
     ""},
    {"decay without rate", "update", "another weight decay: the second model takes off 0.001 of each weight", ""},
    {"decay after", "update", "", "step 1"},
    {"amsgrad", "update", "", "step 2"},
    {"moments reset", "update", "", "step 4"},
    {"gradient of late steps", "backward", "", "new models with these weights agree on these examples"},
};

const Planted kOnStream[] = {
    {"forgotten, plain first", "forward", "a writer that the layout does not name: pos [12, 8] is neutral", ""},
    {"declared", "forward", "a role declared differently: down.weight is a writer in the first model", ""},
    {"stored, plain first", "forward", "a parameter that is not mapped: pos is a writer", ""},
    {"unmapped", "forward", "a map that is missing: the second model stores mapped weights", ""},
    {"bare head", "forward", "a first model that sees the mean of its stream", ""},
    {"dropped", "", "a part that acts in training only", ""},
    {"scaled", "", "a vector that scales the output of a writer: if all entries of scale are equal", ""},
    {"eps", "forward", "different eps: norm1 has 1e-05, norm1 of the second model 1e-06", ""},
    {"gelu", "forward", "", "`relu` [12, 10] after up is the first"},
    {"bare head, gelu", "forward", "", "`relu` [12, 10] after up is the first"},
    {"halved", "forward", "", "agree up to `relu` [12, 10] after up"},
    {"cut", "backward", "", "agree down to `add_norm` [12, 8] of norm.weight"},
};

Comparison at_points(const char* bug) {
  manual_seed(3);
  Port a(false, ""), b(true, bug);
  const bool padded = bug == std::string_view("padding counted") || bug == std::string_view("uneven parts");
  return compare_gradients(a, b, {}, loss_of_port, port_batches(padded));
}

// A is trained with the library's AdamW, B with the ported one. B or its optimizer has the mistake.
Comparison trained(const char* bug) {
  std::set<const Storage*> ported;
  const auto make_a = [] { return manual_seed(3), std::make_unique<Port>(false, ""); };
  const auto make_b = [&] {
    auto b = std::make_unique<Port>(true, bug);
    ported.insert(b->tok.impl().storage.get());
    return b;
  };
  const MakeOptimizer make = [&](const std::vector<Tensor>& p) -> std::unique_ptr<optim::Optimizer> {
    if (ported.contains(p[0].impl().storage.get())) return std::make_unique<PortedAdamW>(p, bug);
    return std::make_unique<Warming>(
        std::make_unique<optim::AdamW>(p, optim::AdamWOptions{.lr = kPortRate, .weight_decay = kPortDecay}));
  };
  return compare_trajectories(make_a, make_b, {}, loss_of_port, make, port_batches(), {.steps = 8});
}

Comparison on_stream(const char* bug) {
  manual_seed(3);
  OnStream a(bug, false), b(bug, true);
  return compare_gradients(a, b, {}, cross_entropy_of, small_batch, {.points = 2});
}

}  // namespace

TEST_CASE("mistakes: ports without one are the same") {
  for (const Comparison& c : {at_points(""), trained(""), on_stream("")}) {
    INFO(c.sentence());
    CHECK(c.equivalent());
  }
}

TEST_CASE("mistakes: causes cost at most five times the gradients of the comparison") {
  for (const Planted& p : kForward) {
    int runs = 0;
    const Objective counted = [&runs](nn::Module& m, const Examples& batch) { return ++runs, loss_of_port(m, batch); };
    manual_seed(3);
    Port a(false, ""), b(true, p.bug);
    const Comparison c = compare_gradients(a, b, {}, counted, port_batches());
    if (!c.first_difference) continue;
    int compared = 0;  // calls of the loss for the same points without a difference
    const Objective same = [&compared](nn::Module& m, const Examples& batch) {
      return ++compared, loss_of_port(m, batch);
    };
    Port right(true, "");
    expected(Verdict::equivalent,
             compare_gradients(a, right, {}, same, port_batches(), {.points = c.first_difference->step}));
    INFO(p.bug << ": " << runs << " runs, " << compared << " without a difference");
    CHECK(runs <= 6 * compared);
  }
}

TEST_CASE("mistakes: the table of planted mistakes and their reported causes") {
  const std::tuple<std::span<const Planted>, Comparison (*)(const char*)> groups[] = {
      {kForward, at_points}, {kBackward, at_points}, {kTrained, trained}, {kOnStream, on_stream}};
  std::string table;
  int planted = 0, right = 0, wrong = 0;
  for (const auto& [mistakes, compare] : groups)
    for (const Planted& p : mistakes) {
      const Comparison c = compare(p.bug);
      const Said s = said_of(p, c);
      INFO(p.bug << ": " << c.sentence());
      CHECK_FALSE(s.wrong);
      CHECK((s.right || !(*p.cause || *p.place)));
      ++planted, right += s.right, wrong += s.wrong;
      table += text(s.bug, " | ", s.wrong ? "wrong" : s.right ? "right" : "no place", " | ", s.said, '\n');
    }
  CHECK(planted >= 75);
  CHECK(right >= planted - 5);
  CHECK(wrong == 0);
  SUCCEED(table << planted << " planted, " << right << " right, " << wrong << " wrong");
}
