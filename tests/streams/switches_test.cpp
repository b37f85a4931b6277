// The architecture switches of docs/normalization.md: switches with which the forms of the stream remain one training,
// and switches with which they do not (G9); readers with zero row sums (G12).
#include "equivalence/compare/own_training.h"
#include "equivalence/judge/criterion.h"
#include "equivalence/lockstep/lockstep.h"
#include "lab/certificate/negative_control.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "tests/equivalence/room.h"
#include "training/steps/step.h"

using namespace isonorm::nn;
using streams::Layout;
using streams::named_parameters;
using streams::parametrize;
using streams::Stream;

namespace {

constexpr TensorOptions kF64{DType::f64};
constexpr int kSteps = 20;
constexpr size_t kControls = 3;
constexpr uint64_t kSeed = 17;
const Form kForms[] = {Form::rms_norm, Form::crms_norm, Form::crms_isometric};

// The options of a model and of its stream.
struct Options : GptOptions {
  streams::StreamOptions stream;
};

struct Switch {
  const char* name;
  std::function<void(Options&)> on;                         // applied to the reference and to the form
  std::function<void(Options&)> in_form = [](Options&) {};  // applied only to the form
  std::optional<BranchOrder> order = {};                    // of the form's branches
  // The deviation of the loss at step 0 and its maximum over the run must reach these; 0: the trainings are the same.
  double first = 0, largest = 0;
};

Options options(const Switch& s, Form form) {
  Options o{{.vocab = 13,
             .context = 6,
             .transformer = {.width = 8, .depth = 2, .heads = 2, .head_width = 4, .mlp_width = 16}},
            {.form = form}};
  s.on(o);
  if (form != Form::layer_norm) s.in_form(o);
  return o;
}

// A training with the targets of one batch in reverse order: how far a negative control deviates.
struct Misled : OwnTraining {
  using OwnTraining::OwnTraining;
  void differentiate(const Examples& batch) override {
    OwnTraining::differentiate(step++ == kSteps / 2 ? Examples{batch.inputs, flip(batch.targets, {0})} : batch);
  }
  int step = 0;
};

// Trains the Pre-LN model, controls that differ from it by one ulp, a misled copy, and the forms in lockstep; judges
// the forms.
void lockstep(const Switch& s, bool adam) {
  constexpr size_t kForm = 2 + kControls;  // index of the first form
  std::vector<std::unique_ptr<Gpt>> models;
  std::vector<RunResult> results(kForm + std::size(kForms));
  Lockstep all;
  for (size_t r = 0; r < results.size(); ++r) {
    const bool control = r > 0 && r <= kControls;
    const Options o = options(s, r < kForm ? Form::layer_norm : kForms[r - kForm]);
    Gpt& m = *models.emplace_back(std::make_unique<Gpt>(streams::make<Gpt>(o, o.stream)));
    m.to(DType::f64);
    if (s.order && r >= kForm) set_branch_order(m, *s.order);
    if (r > 0) {
      m.load_state_dict(models[0]->state_dict());
    } else {  // the weights get a mean, which the forms must not see
      manual_seed(kSeed);
      for (const Tensor& p : m.parameters()) copy_into(p, randn(p.shape(), kF64) * 0.3 + 0.15);
    }
    if (control) move_by_one_ulp(m, r);
    auto training = r + 1 == kForm ? std::make_unique<Misled>(m, named_parameters(m), cross_entropy_of, kSeed)
                                   : std::make_unique<OwnTraining>(m, named_parameters(m), cross_entropy_of, kSeed);
    if (adam)
      training->train_with(std::make_unique<optim::Adam>(m.parameters(), optim::AdamOptions{.lr = 3e-3}), 0);
    else
      training->train_with(std::make_unique<optim::Sgd>(m.parameters(), optim::SgdOptions{.lr = 0.1}), 0);
    all.add(std::move(training), results[r], control);
  }
  Generator data{.seed = kSeed};
  for (int step = 0; step < kSteps; ++step) {
    const Tensor ids = randint(0, 13, {4, 6}, kCpu, data);
    all.step({ids, randint(0, 13, {4, 6}, kCpu, data)}, 0);
  }
  const auto control = running_maximum(std::span(results).subspan(1, kControls));
  const auto reached = reach(std::span(results).subspan(kForm - 1, 1));
  for (size_t r = kForm; r < results.size(); ++r) {
    RunResult& run = results[r];
    run.form = name_of(kForms[r - kForm]);
    run.expected = s.largest > 0 ? Verdict::different : Verdict::equivalent;
    run.control = control;
    run.reach = reached;
    judge(run, DType::f64);
    INFO(s.name << (adam ? ", Adam, " : ", SGD, ") << run.form << ": loss deviates by " << run.deviations.loss[0]
                << " at step 0 and " << run.largest.loss << " at most; " << run.reason);
    CHECK(run.verdict == run.expected);
    if (run.expected == Verdict::equivalent) CHECK(run.as_expected);
    CHECK(run.deviations.loss[0] >= s.first);
    CHECK(run.largest.loss >= s.largest);
  }
}

const auto kNothing = [](Options&) {};
void dropout_on(Options& o) { o.transformer.branch.dropout = 0.2; }
void layer_scale_on(Options& o) { o.transformer.branch.layer_scale = 0.5; }

}  // namespace

TEST_CASE("G9: switches under which the forms train as Pre-LN does") {
  const auto centred_readers = [](Options& o) { o.stream.centre_readers = true; };
  const Switch switches[] = {
      {"plain", kNothing},
      {"gain and bias in all norms", [](Options& o) { o.transformer.affine = true; }},
      {"tied embedding", [](Options& o) { o.tied = true; }},
      {"stochastic depth", [](Options& o) { o.transformer.branch.stochastic_depth = 0.3; }},
      {"dropout before recentring", dropout_on},
      {"layer scale before recentring", layer_scale_on},
      {"centred readers", kNothing, centred_readers},
      {"SwiGLU and rotary positions, an odd width, one head, no biases",
       [](Options& o) {
         TransformerOptions& t = o.transformer;
         t.width = 7, t.heads = 1, t.head_width = 6, t.mlp_width = 11, t.bias = false;
         t.activation = Activation::swiglu, t.positions = Positions::rotary;
       }},
      {"gains without biases, shared keys, rotary positions in halves",
       [](Options& o) {
         TransformerOptions& t = o.transformer;
         t.heads = 4, t.head_width = t.kv_heads = 2, t.mlp_width = 11, t.affine = true, t.bias = t.norm_bias = false;
         t.activation = Activation::swiglu, t.positions = Positions::rotary_halves;
         t.initialisation = Initialisation::scaled;
       }},
      {"no final norm, but a head that does not see the mean either",
       [](Options& o) { o.transformer.final_norm = false, o.stream.centre_readers = true; }},
      {"ReLU without positions",
       [](Options& o) { o.transformer.activation = Activation::relu, o.transformer.positions = Positions::none; }},
      {"all of them",
       [](Options& o) {
         o.tied = o.transformer.affine = true;
         o.transformer.positions = Positions::rotary;
         o.transformer.branch = {.dropout = 0.2, .stochastic_depth = 0.3, .layer_scale = 0.5};
       },
       centred_readers}};
  for (const Switch& s : switches)
    for (const bool adam : {false, true}) lockstep(s, adam);
}

TEST_CASE("G9: switches that make them different trainings") {
  const Switch switches[] = {
      {"dropout after recentring", dropout_on, kNothing, BranchOrder::map_first, 1e-3, 1e-3},
      {"dropout between two recentrings", dropout_on, kNothing, BranchOrder::map_first_and_last, 1e-3, 1e-3},
      {"layer scale after recentring", layer_scale_on, kNothing, BranchOrder::map_first, 1e-3, 1e-3},
      {"no final norm", [](Options& o) { o.transformer.final_norm = false; }, kNothing, {}, 1e-3, 1e-3},
      {"another eps", kNothing, [](Options& o) { o.transformer.eps = 1e-6; }, {}, 1e-7, 1e-6}};
  for (const Switch& s : switches)
    for (const bool adam : {false, true}) lockstep(s, adam);
}

TEST_CASE("G12: readers with zero row sums make RMSNorm's error on a rounded stream second order") {
  constexpr int64_t d = 64;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    manual_seed(8);
    const auto rounded = [&](const Tensor& x) { return x.to(dtype).to(DType::f64); };
    const TransformerOptions one = TransformerOptions{.width = d, .depth = 1}.complete();
    const Stream plain(Form::rms_norm, d), centred(Form::rms_norm, d, Stored::raw, true), layer(Form::layer_norm, d);
    const auto read = [&](const Stream& stream, const Tensor& weight, const Tensor& rows) {
      struct Reader : Module {
        PreNorm& norm = add("norm", PreNorm(d));
        Linear& head = add("head", Linear(d, 3 * d, {.bias = false}));
      } reader;
      reader.to(DType::f64);
      copy_into(reader.head.weight, weight);
      parametrize(reader, Layout().reads("head", "norm"), stream);
      Residual r{rows, {}};
      return reader.head(reader.norm.read(r));
    };
    Residual r{rounded(recentre(randn({2, 16, d}, kF64), -1)), {}};
    const Tensor weight = randn({3 * d, d}, kF64) * 0.1;
    double worst = 0, worst_centred = 0, drift = 0;
    for (int layers = 0; layers < 64; ++layers) {
      TransformerStack block(one);
      parametrize(block, streams::layout_of(one, {.tables = {}, .stacks = {{.blocks = "", .depth = 1}}, .heads = {}}),
                  plain);
      block.to(DType::f64);
      block(r);
      r = {rounded(r.settle()), {}};
      const Tensor expected = read(layer, weight, r.sum);
      worst = std::max(worst, relative_deviation(read(plain, weight, r.sum), expected));
      worst_centred = std::max(worst_centred, relative_deviation(read(centred, weight, r.sum), expected));
      const Tensor rms = sqrt(mean(square(r.sum), {-1}));
      drift = std::max(drift, amax(abs(mean(r.sum, {-1})) / rms).item());
    }
    INFO(name_of(dtype) << ": |mean|/rms up to " << drift << ", readers' error " << worst << ", centred "
                        << worst_centred);
    CHECK(worst > epsilon(dtype) / 100);
    CHECK(worst_centred <= worst / 100);
  }
}
