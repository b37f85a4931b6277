// E18. Random weights, f64: logits and gradients of every form compared with Pre-LN, once with the raw weights mapped
// in the forward and once with converted weights stored.
#include "core/printed.h"
#include "equivalence/lockstep/made_examples.h"
#include "equivalence/lockstep/trainee.h"
#include "isonorm.h"
#include "lab/papers/experiment.h"
#include "lab/papers/margin.h"
#include "streams/stream.h"

namespace isonorm::papers {

using namespace equivalence;
namespace {

constexpr double kSame = 1e-10, kDifferent = 1e-2;
constexpr int kDraws = 3;         // draws of weights and inputs; the largest deviation counts
constexpr double kOffset = 0.15;  // added to every weight, so that there is a mean for the projection to remove

struct Row {
  const char* name;
  const char* css;
  const char* variant;
  bool converted;  // false: the weights of Pre-LN are used unchanged
  bool logits_same, gradients_same;
};
// Plain RMSNorm with converted weights is the same function but has other gradients: they lack the projection
// (docs/normalization.md, F6).
constexpr Row kRows[] = {
    {"rms_norm, raw", "rms", "raw_rms_norm", true, true, true},
    {"crms_norm, raw", "crms", "raw_crms_norm", true, true, true},
    {"crms_isometric, raw", "isometric", "raw_crms_isometric", true, true, true},
    {"rms_norm, converted", "rms", "projected_once", true, true, false},
    {"crms_norm, converted", "crms", "compressed_plain", true, true, true},
    {"crms_isometric, converted", "isometric", "isometric_plain", true, true, true},
    {"rms_norm, not converted", "negative", "projected_once", false, false, false},
};

struct Deviation {
  double logits = 0, gradient = 0;
};

// Compares every row with Pre-LN for one draw of weights and inputs. `worst` keeps the larger deviations.
void compare(const training::TrainingOptions& o, uint64_t draw, std::vector<Deviation>& worst) {
  manual_seed(o.seed + draw);
  const auto raw = build_model(o, {.form = streams::Form::layer_norm});
  for (const Tensor& p : raw->parameters()) copy_into(p, detach(p) + kOffset);
  const training::Examples batch = made_examples(o, draw);

  const auto differentiated = [&](const Variant& v, bool converted) {
    auto t = std::make_unique<Trainee>(o, v);
    if (converted)
      t->start_from(*raw);
    else
      t->model().load_state_dict(raw->state_dict());
    t->differentiate(batch);
    return t;
  };
  const auto reference = differentiated(raw_variant(streams::Form::layer_norm), true);
  const auto logits_of = [&](Trainee& t) {
    NoGrad no_grad;
    return t.model()(batch.inputs);
  };
  const Tensor logits = logits_of(*reference);
  const double size = amax(abs(logits)).item();
  for (size_t i = 0; i < std::size(kRows); ++i) {
    const auto t = differentiated(variant(kRows[i].variant), kRows[i].converted);
    worst[i].logits = larger(worst[i].logits, amax(abs(logits_of(*t) - logits)).item() / size);
    worst[i].gradient = larger(worst[i].gradient, t->gradient_deviation(*reference));
  }
}

}  // namespace

ExperimentResult conversion(const ExperimentOptions& options) {
  ExperimentResult r;
  Margin margin(kSame, kDifferent);
  const auto cell = [&](double v, bool same) { return reports::number_cell(v, margin.take(v, same)); };
  const auto expected = [](bool same) { return reports::TextCell{same ? "equivalent" : "different"}; };
  reports::TextTable table{.heading = "Logits and gradients of every form",
                           .columns = {"model", "form, weights", "logits", "expected", "gradients", "expected"},
                           .caption = text("Largest deviation from Pre-LN over ", kDraws,
                                           " draws of weights and inputs, relative to the largest entry (of the "
                                           "logits; of each parameter's gradient, in raw coordinates).")};
  reports::Figure figure{.name = "deviation",
                         .heading = "Deviation from Pre-LN",
                         .css = "three",
                         .caption =
                             "Filled: expected to be rounding. Plain RMSNorm on converted weights is the same "
                             "function, but its gradient lacks the projection."};
  for (const training::ModelRow* model : training::kModels) {
    training::TrainingOptions o;
    o.model = training::ModelOptions(*model, {.width = 48, .depth = 3, .heads = 3});
    o.model.fit({.image = 16, .channels = 3, .classes = 10, .vocab = 29});
    o.model.fit({{"patch", 4}, {"context", 24}});
    o.seed = options.seed;
    o.device = options.device;
    o.batch = 4;
    std::vector<Deviation> worst(std::size(kRows));
    for (uint64_t draw = 0; draw < kDraws; ++draw) compare(o, draw, worst);

    reports::DotPlot plot{.title = text("Deviation of logits and gradients of a ", name_of(model), " from Pre-LN"),
                          .axis = "relative deviation: logits above, gradients below",
                          .low = 1e-17,
                          .high = 100,
                          .width = 340,
                          .zones = {{"good", "equivalent", 1e-17, kSame}, {"bad", "different", kDifferent, 100}}};
    for (size_t i = 0; i < std::size(kRows); ++i) {
      const Row& row = kRows[i];
      table.rows.push_back({{name_of(model)},
                            {row.name},
                            cell(worst[i].logits, row.logits_same),
                            expected(row.logits_same),
                            cell(worst[i].gradient, row.gradients_same),
                            expected(row.gradients_same)});
      plot.rows.push_back(
          {row.name,
           {{row.css, text("logits: ", scientific(worst[i].logits)), worst[i].logits, row.logits_same},
            {row.css, text("gradients: ", scientific(worst[i].gradient)), worst[i].gradient, row.gradients_same}}});
    }
    figure.panels.push_back({.heading = model->title, .drawing = std::move(plot)});
  }
  r.tables.push_back(std::move(table));
  r.figures.push_back(std::move(figure));
  r.confirmed = margin.kept();
  r.measured = text("Equal quantities agree to ", scientific(margin.largest_same()),
                    "; different ones differ by at least ", scientific(margin.smallest_different()), ".");
  r.refuted = margin.refuted();
  return r;
}

}  // namespace isonorm::papers
