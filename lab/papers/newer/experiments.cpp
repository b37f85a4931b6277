// Architectures newer than 2305.14858: which have an exact RMSNorm form, how it is computed, and the error if a part is
// missing.
#include "isonorm.h"
#include "lab/papers/experiment.h"
#include "lab/papers/margin.h"
#include "lab/papers/newer/nets.h"
#include "nn/linear.h"
#include "streams/parametrize.h"

namespace isonorm::papers {
namespace {

using equivalence::Comparison;
using equivalence::Verdict;
using streams::Form;

constexpr double kSame = 1e-12;      // as in invariance.cpp; relative to the largest logit
constexpr double kDifferent = 1e-3;  // if the output depends on the mean of a row

struct Subject {
  const NewerArrangement& arrangement;
  const ExperimentOptions& options;

  // The model with LayerNorm, f64. Adds random numbers to all parameters, so that none has its special initial value 0
  // or 1.
  std::unique_ptr<nn::Module> plain(Slip slip = Slip::none) const {
    manual_seed(options.seed);
    std::unique_ptr<nn::Module> net = arrangement.make(slip);
    net->to(DType::f64), net->to(options.device);
    Generator random{options.seed, 0};
    const NoGrad no_grad;
    for (const nn::NamedParameter& p : net->named_parameters())
      copy_into(p.tensor, p.tensor + 0.2 * randn(p.tensor.shape(), p.tensor.options(), random));
    return net;
  }
  std::unique_ptr<nn::Module> on(Form form, const streams::Layout& layout, Slip slip = Slip::none) const {
    std::unique_ptr<nn::Module> net = plain(slip);
    streams::parametrize(*net, layout, {form, layout.width()});
    return net;
  }
  Tensor logits(nn::Module& net) const {
    const NoGrad no_grad;
    return net(arange(kNewerIds, {DType::i64, options.device}));
  }
  double off(nn::Module& net, const Tensor& reference) const {
    return amax(abs(logits(net) - reference)).item() / amax(abs(reference)).item();
  }
  // Trains it next to the model with LayerNorm and compares the trainings.
  Comparison trained(const equivalence::MakeModel& make) const {
    const auto adamw = [](const std::vector<Tensor>& parameters) -> std::unique_ptr<optim::Optimizer> {
      return std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions{.lr = 1e-3});
    };
    const auto batch = [this](int64_t step) {
      Generator data{options.seed, static_cast<uint64_t>(step + 1)};
      const auto draw = [&](int64_t end) { return randint(0, end, {64}, options.device, data); };
      return training::Examples{draw(kNewerIds), draw(kNewerClasses)};
    };
    return equivalence::compare_trajectories([this] { return plain(); }, make, {}, training::cross_entropy_of, adamw,
                                             batch, {.seed = options.seed});
  }
};

// Collects the measurements of several architectures.
class Measured {
 public:
  Measured(const char* heading, const ExperimentOptions& options) : options_(options) {
    table_.heading = heading;
    table_.columns = {"arrangement", "form", "layout", "logits", "training", "gradients, weights", "moved by one ulp"};
    table_.caption =
        "Deviation from the model with LayerNorm: of the logits, relative to the largest; of gradients and weights, "
        "the largest in 20 steps of AdamW, compared with the model moved by one unit in the last place.";
    plot_.title = "Deviation of the logits from the model with LayerNorm";
    plot_.axis = "relative to the largest logit";
    plot_.low = 1e-17, plot_.high = 100;
    plot_.zones = {{"good", "the same", 1e-17, kSame}, {"bad", "another function", kDifferent, 100}};
  }

  void take(const NewerArrangement& a) {
    const Subject s{a, options_};
    const Tensor reference = s.logits(*s.plain());
    name_ = a.name;
    plot_.rows.push_back({a.name, {}});
    for (Form form : a.exact) see(s, form, "exact", a.layout, Slip::none, reference, true);
    for (const NewerArrangement::Wrong& w : a.wrong) see(s, w.form, w.what, w.layout, w.slip, reference, false);
    if (!a.exact.empty()) return;
    // Shifting E keeps P E but changes the logits, so no model that reads only P x computes them.
    const auto moved = s.plain();
    nn::Parameter& table = *moved->find_parameter("table.weight");
    table.store(detach(table.stored()) + 0.5);
    const double off = s.off(*moved, reference);
    row("layer_norm", "E + 1/2: P E is the same", off, false);
  }

  ExperimentResult result() && {
    ExperimentResult r;
    r.tables.push_back(std::move(table_));
    r.figures.push_back({.name = "forms",
                         .heading = "Exact forms and incomplete ones",
                         .panels = {{.legend = {{"dot solid rms", "exact form"},
                                                {"dot solid negative", "no exact form, or an incomplete one"}},
                                     .drawing = std::move(plot_)}},
                         .caption = "Filled dots have to be on the left, hollow ones on the right."});
    r.undecided = margin_.kept() && expected_ && undecided_;
    r.confirmed = margin_.kept() && expected_ && !undecided_;
    const bool exact = margin_.largest_same() > 0;
    r.measured =
        text(exact ? text("Exact forms deviate by at most ", scientific(margin_.largest_same()), "; models that")
                   : "Models that",
             " lack a part, or have no exact form, deviate by at least ", scientific(margin_.smallest_different()),
             expected_ ? undecided_ ? "; a training is undecided." : "; trainings say the same."
                       : "; a training says otherwise.");
    r.refuted = text(margin_.refuted(),
                     ", or a training of 20 steps that differs although it should be the same, or is the same although "
                     "it should differ");
    return r;
  }

 private:
  void see(const Subject& s, Form form, const char* what, const streams::Layout& layout, Slip slip,
           const Tensor& reference, bool same) {
    options_.go_on();
    const auto make = [&] { return s.on(form, layout, slip); };
    row(streams::name_of(form), what, s.off(*make(), reference), same);
    const Comparison c = s.trained(make);
    const bool expected = c.verdict == (same ? Verdict::equivalent : Verdict::different);
    undecided_ = undecided_ || c.verdict == Verdict::undecided;
    expected_ = expected_ && (expected || c.verdict == Verdict::undecided);
    const auto tone = expected ? reports::Tone::plain : reports::Tone::bad;
    std::vector<reports::TextCell>& cells = table_.rows.back();
    cells[4] = {name_of(c.verdict), tone};
    cells[5] = reports::number_cell(c.deviation, tone), cells[6] = reports::number_cell(c.control);
  }
  void row(const char* form, const char* what, double off, bool same) {
    table_.rows.push_back(
        {{name_}, {form}, {what}, reports::number_cell(off, margin_.take(off, same)), {"-"}, {"-"}, {"-"}});
    plot_.rows.back().dots.push_back(
        {same ? "rms" : "negative", text(form, ", ", what, ": ", scientific(off)), off, same});
    name_ = "";
  }

  const ExperimentOptions& options_;
  reports::TextTable table_;
  reports::DotPlot plot_;
  Margin margin_{kSame, kDifferent};
  bool expected_ = true, undecided_ = false;  // from the trainings
  const char* name_ = "";
};

ExperimentResult measured(const char* heading, const std::vector<NewerArrangement>& all,
                          const ExperimentOptions& options) {
  Measured m(heading, options);
  for (const NewerArrangement& a : all) m.take(a);
  return std::move(m).result();
}

}  // namespace

ExperimentResult peri_ln_forms(const ExperimentOptions& o) { return measured("Peri-LN", peri_ln(), o); }
ExperimentResult olmo2_forms(const ExperimentOptions& o) { return measured("OLMo 2's order", olmo2_order(), o); }
ExperimentResult hyper_connection_forms(const ExperimentOptions& o) {
  return measured("Hyper-connections", hyper_connections(), o);
}
ExperimentResult qk_norm_forms(const ExperimentOptions& o) { return measured("QK-norm", qk_norm(), o); }
ExperimentResult pointwise_forms(const ExperimentOptions& o) { return measured("DyT and Derf", pointwise(), o); }

}  // namespace isonorm::papers
