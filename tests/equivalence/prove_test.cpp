// G6: whole proofs on small models. The forms follow Pre-LN with every optimizer, the negative controls do not, and a
// forged weight is detected.
#include <fstream>

#include "equivalence/compare/audit.h"
#include "equivalence/convert/convert.h"
#include "equivalence/judge/criterion.h"
#include "equivalence/lockstep/prove.h"
#include "equivalence/lockstep/trainee.h"
#include "tests/equivalence/small_net.h"
#include "tests/support/plain_net.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tempered.h"

namespace {

// A text that can be learned: words in random order.
std::string words() {
  static const TempFolder folder;
  const std::string path = folder / "words.txt";
  if (std::filesystem::exists(path)) return path;
  Generator g{5, 0};
  const char* words[] = {"norm ", "stream ", "writer ", "reader ", "mean ", "zero ", "of ", "the "};
  std::ofstream out(path);
  for (int64_t w : randint(0, 8, {3000}, kCpu, g).to_vector<int64_t>()) out << words[w];
  return path;
}

TrainingOptions small(const ModelRow& model = kGpt, nn::TransformerOptions t = {}) {
  t.width = 16, t.depth = 2, t.heads = 2;
  TrainingOptions o{.model = {model, t}, .data = {}, .warmup = 4, .steps = 20, .batch = 6};
  o.model.fit({{"context", 12}});
  if (model.input != Input::images) o.data = words();
  return o;
}

// Random ids below nine instead of a text; and a batch.
TrainingOptions of_ids(const nn::TransformerOptions& t = {}) {
  TrainingOptions o = small(kGpt, t);
  o.data = "";
  o.model.set({"vocab", 9});
  return o;
}
Examples ids() { return {randint(0, 9, {6, 12}), randint(0, 9, {6, 12})}; }

void check_proof(const TrainingOptions& o) {
  const ProofResult r = prove({.training = o});
  CHECK(r.equivalent());
  check_runs(r);
}

}  // namespace

TEST_CASE("the forms of a model with a row of its own train as Pre-LN does") { check_proof(small(test::kTempered)); }

TEST_CASE("a plain model that knows no form: with its layout, every form trains as Pre-LN does") {
  const TrainingOptions o = small(test::kPlain);
  check_proof(o);
  const AuditResult seen = audit(o);
  CHECK(seen.verdict == Verdict::equivalent);
  CHECK(seen.directions() > 0);
  // Files describe the model, and its weights can be converted.
  manual_seed(4);
  const auto make = [](streams::Form form, streams::Stored storage) {
    auto net = streams::make<test::PlainNet>({}, {.form = form, .storage = storage});
    net.to(DType::f64);
    return net;
  };
  test::PlainNet raw = make(streams::Form::rms_norm, streams::Stored::raw);
  const Metadata description = describe(raw, test::kWithPlain);
  CHECK(description.at("model.hidden") == "12");
  CHECK(description.at("model.form") == "rms_norm");
  CHECK(description.size() == 7);  // kind, its three options, and three options of the stream
  CHECK(describe(*ModelOptions(description, test::kWithPlain).build(), test::kWithPlain) == description);
  const Tensor ids = randint(0, 7, {3, 5}), expected = raw(ids);
  for (const streams::Form form : streams::centred_forms()) {
    INFO(name_of(form));
    test::PlainNet mapped = make(form, streams::Stored::mapped);
    mapped.load_state_dict(convert(raw.state_dict(), streams::plan_of(raw), form).state);
    check_close(mapped(ids), expected, 64 * 12 * 0x1p-52);
  }
}

TEST_CASE("G6: the forms train as Pre-LN does, with every optimizer; converted weights trained plainly do not") {
  struct Case {
    const char* optimizer;
    double lr, decay, clip;
  };
  for (const ModelRow* model : {&kVit, &kGpt})
    for (const Case& c :
         {Case{"sgd", 0.05, 0, 0}, {"momentum", 0.02, 0.01, 1}, {"adam", 1e-3, 0.01, 0}, {"adamw", 1e-3, 0.1, 1}}) {
      INFO(name_of(model) << ", " << c.optimizer);
      TrainingOptions o = small(*model);
      o.optimizer = &optimizer(c.optimizer);
      o.lr = c.lr, o.weight_decay = c.decay, o.clip = c.clip;
      check_proof(o);
    }
}

TEST_CASE("the forms train as Pre-LN does with clipping, schedules, averages and the like") {
  using Change = void (*)(TrainingOptions&, nn::TransformerOptions&);
  const std::pair<const char*, Change> regimes[] = {
      {"f32", [](auto& o, auto&) { o.dtype = DType::f32; }},
      {"decay of matrices", [](auto& o, auto& t) { o.decay_matrices_only = t.affine = true, o.weight_decay = 0.3; }},
      {"accumulation", [](auto& o, auto&) { o.accumulate = 3; }},
      {"average", [](auto& o, auto&) { o.ema = 0.9; }},
      {"ranks", [](auto& o, auto&) { o.ranks = 3, o.accumulate = 2, o.ema = 0.9, o.resume_at = 7; }},
      {"ranks that share a state",
       [](auto& o, auto&) { o.ranks = 2, o.zero = 1, o.accumulate = 6, o.rank_invariant = true, o.resume_at = 7; }},
      {"resumed", [](auto& o, auto& t) { o.resume_at = 7, o.ema = 0.9, t.branch.dropout = 0.1; }}};
  for (const auto& [name, change] : regimes) {
    INFO(name);
    TrainingOptions o = small();
    change(o, o.model.transformer());
    check_proof(o);
  }
}

TEST_CASE("an average, a part of a batch and an undecayed vector are what they say") {
  TrainingOptions o = of_ids({.affine = true});
  o.optimizer = &optimizer("sgd");
  o.warmup = 0, o.clip = 0, o.lr = 0.5, o.weight_decay = 0.25;
  const Variant& raw = raw_variant(streams::Form::layer_norm);
  const Examples batch = ids();
  const auto trained = [&](const TrainingOptions& options, int steps) {
    manual_seed(1);
    auto t = std::make_unique<Trainee>(options, raw);
    for (int i = 0; i < steps; ++i) {
      t->differentiate(batch);
      t->update(o.lr);
    }
    return t;
  };
  const auto whole = trained(o, 1);
  TrainingOptions parts = o, average = o, matrices = o;
  parts.accumulate = 3, average.ema = 0.75, matrices.decay_matrices_only = true;
  // The mean of three means of equal size, added in another order: a few eps of the largest entry.
  CHECK(trained(parts, 1)->gradient_deviation(*whole) < 1e3 * 0x1p-52);
  CHECK(trained(parts, 1)->gradient_deviation(*whole) > 0);
  const auto pair_of = [](const std::vector<Pair>& pairs, const std::string& name) {
    const auto pair = std::ranges::find(pairs, name, &Pair::name);
    REQUIRE(pair != pairs.end());
    return pair->value.to_vector<double>();
  };
  // A gain begins at 1. After a step it is g, and its average is 0.75 + 0.25 g.
  const auto averaged = trained(average, 1);
  const std::vector<Pair> pairs = averaged->weight_pairs(*averaged);
  const std::vector<double> gain = pair_of(pairs, "norm.weight"), mean = pair_of(pairs, "average of norm.weight");
  for (size_t i = 0; i < gain.size(); ++i) CHECK(std::abs(mean[i] - (0.75 + 0.25 * gain[i])) < 4 * 0x1p-52);
  // L2 subtracts lr * decay = 1/8 from a gain of 1. Matrices decay in both cases.
  const auto undecayed = trained(matrices, 1);
  const std::vector<Pair> kept = undecayed->weight_pairs(*whole);
  const std::vector<double> higher = pair_of(kept, "norm.weight");
  for (size_t i = 0; i < gain.size(); ++i) CHECK(std::abs(higher[i] - (gain[i] + 0.125)) < 4 * 0x1p-52);
  for (const Pair& p : kept)
    if (p.reference.rank() > 1) CHECK(deviation({p}) == 0);
  o.accumulate = 4;
  CHECK_THROWS_WITH(trained(o, 1), Contains("6 examples in 4 parts"));
}

// Clipping and Adam cancel the size of a gradient, so a sum instead of a mean shows only in gradients.
TEST_CASE("mistakes of ranks are detected even if the step after the gradient hides them") {
  const auto faults = [](int64_t batch, double dropout, double clip) {
    TrainingOptions o = small();
    o.ranks = 2, o.batch = static_cast<int>(batch), o.clip = clip, o.model.transformer().branch.dropout = dropout;
    const ProofResult r = prove({.training = o});
    std::vector<std::string> found;
    for (const RunResult& run : r.runs)
      if (*run.negative_control != 0 && run.as_expected) found.push_back(run.negative_control);
    CHECK((dropout > 0 || r.equivalent()));
    return found;
  };
  const std::vector<std::string> always = {"sum for mean", "a rank left out", "a gradient summed twice"};
  std::vector<std::string> odd = always;
  odd.push_back("ranks unweighted");
  CHECK(faults(6, 0, 1e-3) == always);
  CHECK(faults(7, 0, 0) == odd);
  CHECK(faults(6, 0.2, 0).back() == "equal dropout on all ranks");
}

TEST_CASE("a tied head after learned gains has its own negative controls") {
  TrainingOptions o = small(kGpt, {.affine = true});
  o.model.set({"tied", true});
  const ProofResult r = prove({.training = o});
  CHECK(r.equivalent());
  CHECK(r.horizon.steps == 20);
  REQUIRE(r.runs.size() == 5);
  CHECK(r.runs[3].negative_control == std::string("one batch exchanged"));
  CHECK(r.runs[4].negative_control == std::string("gains frozen"));
  for (size_t i : {3u, 4u}) CHECK(r.runs[i].verdict == Verdict::different);
}

TEST_CASE("a proof is undecided if a negative control deviates no more than rounding, and holds up to its horizon") {
  TrainingOptions o = small();
  o.dtype = DType::f32;
  o.optimizer = &optimizer("sgd");
  o.clip = 0, o.steps = 60;
  o.model.transformer().width = 8;
  struct Case {
    double lr;
    int least, most;  // of the horizon
    Verdict verdict;
  };
  // Chaos; a rate too small to show in the loss; and a rate between the two.
  for (const Case& c :
       {Case{8, 0, 19, Verdict::undecided}, {1e-3, 0, 0, Verdict::undecided}, {0.05, 60, 60, Verdict::equivalent}}) {
    o.lr = c.lr;
    const ProofResult r = prove({.training = o});
    INFO(c.lr << ": " << r.horizon.steps << " of 60, controls " << r.largest_control.weight << ", "
              << r.horizon.limit.loss);
    CHECK(r.verdict == c.verdict);
    CHECK(r.horizon.steps >= c.least);
    CHECK(r.horizon.steps <= c.most);
  }
}

TEST_CASE("a proof stops when it is told to, and concludes nothing") {
  int calls = 0;
  const ProofResult r = prove({.training = small()}, [&](const StepInfo&) { return ++calls < 3; });
  CHECK(calls == 3);
  CHECK(r.interrupted);
  CHECK_FALSE(r.equivalent());
}

TEST_CASE("a weight that differs by 1e-9 of its tensor's largest is seen at step 1, and NaN is not covered up") {
  TrainingOptions o = of_ids();
  o.lr = 1e-3;
  const Variant& raw = raw_variant(streams::Form::layer_norm);
  manual_seed(1);
  Trainee reference(o, raw), control(o, raw), forged(o, raw), broken(o, raw);
  for (Trainee* t : {&control, &forged, &broken}) t->model().load_state_dict(reference.model().state_dict());
  move_by_one_ulp(control.model(), 7);
  const auto weight = [](Trainee& t, size_t i) {
    return streams::named_parameters(t.model())[i].tensor.mutable_data<double>();
  };
  weight(forged, 4)[3] += 1e-9;
  const Examples batch = ids();
  for (Trainee* t : {&reference, &control, &forged, &broken}) t->differentiate(batch);
  weight(broken, 0)[0] = NAN;  // in a tensor that is compared before others
  for (Trainee* t : {&reference, &control, &forged, &broken}) t->update(o.lr);
  CHECK(forged.gradient_deviation(reference) > bound(control.gradient_deviation(reference), DType::f64));
  CHECK(forged.weight_deviation(reference) > bound(control.weight_deviation(reference), DType::f64));
  CHECK(control.gradient_deviation(reference) > 0);
  CHECK(std::isnan(broken.weight_deviation(reference)));
}

TEST_CASE("options that make no proof are refused with both values") {
  const std::pair<void (*)(ProofOptions&), const char*> wrong[] = {
      {[](ProofOptions& o) { o.training.steps = 0; }, "0 steps"},
      {[](ProofOptions& o) { o.training.model.transformer() = {.width = 2, .heads = 1}; },
       "prove: the stream has width 2, expected at least 3"},
      {[](ProofOptions& o) { o.controls = 0; }, "0 controls"},
      {[](ProofOptions& o) { o.training.dtype = DType::bf16; }, "bf16"},
      {[](ProofOptions& o) { o.forms = {"batch_norm"}; }, "batch_norm"},
      {[](ProofOptions& o) {
         o.forms = {"rms_norm", "layer_norm"};
       },
       "layer_norm is the reference"}};
  for (const auto& [change, says] : wrong) {
    ProofOptions o;
    change(o);
    CHECK_THROWS_WITH(prove(o), Contains(says));
  }
}
