// E13. y = norm(W z) before and after a change of W or z; eps = 0, f64. A norm is invariant if y does not change.
#include <cmath>

#include "core/printed.h"
#include "isonorm.h"
#include "lab/papers/experiment.h"
#include "lab/papers/margin.h"
#include "streams/coordinates.h"
#include "streams/stream.h"

namespace isonorm::papers {
namespace {

constexpr int64_t kCases = 16, kIn = 24, kOut = 32;
constexpr double kSame = 1e-12;      // an invariant norm changes less than this
constexpr double kDifferent = 1e-2;  // any other norm changes more
constexpr double kFactor = 3;        // the scaling factor; a power of two would change no digit

struct Data {
  Tensor w, z;  // W [out, in]; inputs [cases, in]
};

// --- norms ---

constexpr NormOptions kExact = {.eps = 0};
Tensor rows(const Data& d) { return linear(d.z, d.w); }
Tensor by_layer(const Data& d) { return layer_norm(rows(d), {}, {}, kExact); }
Tensor by_rms(const Data& d) { return rms_norm(rows(d), {}, {}, kExact); }
Tensor by_partial_rms(const Data& d) { return rms_norm(rows(d), {}, {}, {.eps = 0, .p = 0.25}); }
Tensor by_recentred_rms(const Data& d) { return by_rms({streams::recentre(d.w, 0), d.z}); }
// Ioffe and Szegedy, 1502.03167: each output is normalized over the batch.
Tensor by_batch(const Data& d) {
  const Tensor centred = rows(d) - mean(rows(d), {0}, true);
  return centred / sqrt(mean(square(centred), {0}, true));
}
// Salimans and Kingma, 1602.07868: every row of W is scaled to length 1.
Tensor by_weight(const Data& d) { return linear(d.z, d.w / sqrt(sum(square(d.w), {1}, true))); }

struct System {
  const char* name;
  const char* css;
  Tensor (*run)(const Data&);
  bool invariant[6];  // under the changes below
};
constexpr System kSystems[] = {
    {"layer_norm", "other", by_layer, {true, true, false, true, false, true}},
    {"rms_norm", "rms", by_rms, {true, false, false, true, false, true}},
    {"rms_norm, p = 0.25", "isometric", by_partial_rms, {true, false, false, true, false, true}},
    {"rms_norm of P W z", "crms", by_recentred_rms, {true, true, false, true, false, true}},
    {"batch norm", "plain", by_batch, {true, false, true, true, true, false}},
    {"weight norm", "negative", by_weight, {true, false, true, false, false, false}},
};

// --- changes ---

Tensor with_scaled_row(const Tensor& x) {
  Tensor copy = empty_like(x);
  copy_into(copy, x);
  copy_into(narrow(copy, 0, 1, 1), kFactor * narrow(x, 0, 1, 1));
  return copy;
}

// c [in]: a direction.
Data all_weights(const Data& d, const Tensor&) { return {kFactor * d.w, d.z}; }
Data shifted_weights(const Data& d, const Tensor& c) { return {d.w + c, d.z}; }
Data one_row(const Data& d, const Tensor&) { return {with_scaled_row(d.w), d.z}; }
Data all_inputs(const Data& d, const Tensor&) { return {d.w, kFactor * d.z}; }
Data shifted_inputs(const Data& d, const Tensor& c) { return {d.w, d.z + c}; }
Data one_input(const Data& d, const Tensor&) { return {d.w, with_scaled_row(d.z)}; }

struct Change {
  const char* name;
  Data (*apply)(const Data&, const Tensor& c);
};
constexpr Change kChanges[] = {
    {"W x 3", all_weights},         {"W + 1 c^T", shifted_weights},     {"a row of W x 3", one_row},
    {"all inputs x 3", all_inputs}, {"all inputs + c", shifted_inputs}, {"one input x 3", one_input}};

reports::Panel invariance_panel(const Data& data, const Tensor& c, reports::TextTable& table, Margin& margin) {
  reports::Panel panel;
  for (const System& s : kSystems) panel.legend.push_back({text("dot solid ", s.css), s.name});
  reports::DotPlot plot{.title = "Largest change of a normalised row under each change of weights or data",
                        .axis = "largest |y - y'|",
                        .low = 1e-17,
                        .high = 100,
                        .zones = {{"good", "invariant", 1e-17, kSame}, {"bad", "not invariant", kDifferent, 100}}};
  for (const Change& change : kChanges) plot.rows.push_back({change.name, {}});
  table = {.heading = "Invariance of norms", .columns = {"norm"}};
  for (const Change& change : kChanges) table.columns.push_back(change.name);
  for (const System& s : kSystems) {
    const Tensor y = s.run(data);
    std::vector<reports::TextCell> row = {{s.name}};
    for (size_t i = 0; i < std::size(kChanges); ++i) {
      const double change = amax(abs(y - s.run(kChanges[i].apply(data, c)))).item();
      row.push_back(
          {text(s.invariant[i] ? "yes " : "no ", scientific(change)), margin.take(change, s.invariant[i]), change});
      plot.rows[i].dots.push_back({s.css, text(s.name, ": ", scientific(change)), change, s.invariant[i]});
    }
    table.rows.push_back(std::move(row));
  }
  table.caption = "yes, no: the paper's claim that the norm is invariant, with the largest measured |y - y'|.";
  panel.drawing = std::move(plot);
  return panel;
}

// --- gradients ---

struct Gradients {
  Tensor gain, bias, w;
};

// Gradients of <upstream, norm(W z) gain + bias>.
Gradients gradients(Tensor (*norm)(const Data&), const Data& data, const Tensor& gain, const Tensor& upstream) {
  const Tensor w = require_grad(detach(data.w)), g = require_grad(detach(gain));
  const Tensor b = require_grad(zeros_like(gain));
  const std::vector<Tensor> found = grad(sum((norm({w, data.z}) * g + b) * upstream), {g, b, w});
  return {found[0], found[1], found[2]};
}

double off(const Tensor& measured, const Tensor& expected) {
  return amax(abs(measured - expected)).item() / amax(abs(expected)).item();
}

reports::TextTable gradient_table(const Data& data, const Tensor& gain, const Tensor& upstream, Margin& margin) {
  reports::TextTable table{.heading = "How gradients scale",
                           .columns = {"norm", "gradient of", "inputs x 3", "expected x", "W x 3", "expected x"},
                           .caption =
                               "Deviation of the gradient from the gradient before the change times the expected "
                               "factor, relative to its largest entry."};
  const auto add_norm = [&](const char* name, Tensor (*norm)(const Data&)) {
    const Gradients base = gradients(norm, data, gain, upstream);
    const Gradients inputs = gradients(norm, {data.w, kFactor * data.z}, gain, upstream);
    const Gradients weights = gradients(norm, {kFactor * data.w, data.z}, gain, upstream);
    const auto add = [&](const char* what, Tensor Gradients::*part, double factor) {
      const auto cell = [&](double v) { return reports::number_cell(v, margin.take(v, true)); };
      table.rows.push_back({{name},
                            {what},
                            cell(off(inputs.*part, base.*part)),
                            reports::count_cell(1),
                            cell(off(weights.*part, factor * (base.*part))),
                            {factor == 1 ? "1" : "1/3", reports::Tone::plain, factor}});
    };
    add("gain", &Gradients::gain, 1);
    add("bias", &Gradients::bias, 1);
    add("W", &Gradients::w, 1 / kFactor);
  };
  add_norm("layer_norm", by_layer);
  add_norm("rms_norm", by_rms);
  return table;
}

reports::Panel scale_panel(const Data& data, const Tensor& gain, const Tensor& upstream) {
  reports::Chart chart{.title = "Norm of the gradient of W against the scale of W",
                       .log_scale = true,
                       .low = 1e-3,
                       .high = 1e3,
                       .axis = "W multiplied by",
                       .width = 660,
                       .height = 280};
  std::vector<double> scales;
  for (int e = -6; e <= 6; ++e) {
    scales.push_back(std::pow(2.0, e));
    chart.ticks.push_back(e < 0 ? text("1/", std::pow(2.0, -e)) : text(scales.back()));
  }
  chart.steps = static_cast<int>(scales.size());
  const auto add = [&](const char* name, const char* css, Tensor (*norm)(const Data&)) {
    reports::ChartLine line{name, css, {}};
    const auto size = [&](double scale) {
      return std::sqrt(sum(square(gradients(norm, {scale * data.w, data.z}, gain, upstream).w)).item());
    };
    const double base = size(1);
    for (double scale : scales) line.values.push_back(size(scale) / base);
    chart.lines.push_back(std::move(line));
  };
  add("layer_norm", "thin reference", by_layer);
  add("rms_norm", "rms", by_rms);
  add("no norm", "other", rows);
  return panel_of(std::move(chart));
}

}  // namespace

ExperimentResult invariance(const ExperimentOptions& options) {
  Generator random{options.seed, 0};
  const TensorOptions f64{DType::f64, options.device};
  const Data data{randn({kOut, kIn}, f64, random), randn({kCases, kIn}, f64, random)};
  const Tensor c = randn({kIn}, f64, random), gain = randn({kOut}, f64, random);
  const Tensor upstream = randn({kCases, kOut}, f64, random);

  ExperimentResult r;
  Margin margin(kSame, kDifferent);
  r.tables.emplace_back();
  r.figures.push_back(
      {.name = "table",
       .heading = "Invariance of norms",
       .panels = {invariance_panel(data, c, r.tables[0], margin)},
       .caption = "Every norm under every change. Filled dots have to be on the left, hollow ones on the right, and "
                  "none between the two zones. RMSNorm differs from LayerNorm in one place: a shift common to all rows "
                  "of W, and a recentred W takes that difference away."});
  r.tables.push_back(gradient_table(data, gain, upstream, margin));
  r.figures.push_back({.name = "gradient",
                       .heading = "The larger the weights, the smaller the steps",
                       .panels = {scale_panel(data, gain, upstream)},
                       .caption = "Norm of dL/dW relative to its value at scale 1. With a norm it falls as 1 / scale: "
                                  "weights that have grown learn more slowly, without any schedule."});
  r.confirmed = margin.kept();
  r.measured = text("Invariant norms change by at most ", scientific(margin.largest_same()),
                    "; the others change by at least ", scientific(margin.smallest_different()), ".");
  r.refuted = margin.refuted();
  return r;
}

}  // namespace isonorm::papers
