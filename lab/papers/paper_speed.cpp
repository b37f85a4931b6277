// Times of the forms on the paper's models: its tables 3 to 5 and figures 4b and 5, for the cells that a budget allows.
#include <algorithm>
#include <cmath>
#include <memory>

#include "core/printed.h"
#include "core/system/stopwatch.h"
#include "isonorm.h"
#include "lab/papers/experiment.h"
#include "lab/papers/timing/paper_cell.h"
#include "lab/papers/timing/turns.h"
#include "training/steps/step.h"

namespace isonorm::papers {
namespace {

// A form. `wider` is added to the width: Pre-CRMSNorm with wider = 1 stores rows as wide as Pre-LN's, and is equal to a
// Pre-LN model of d + 1 entries.
struct Method {
  const char *name, *css;
  streams::Form form;
  int64_t wider = 0;
};
constexpr Method kMethods[] = {{"Pre-LN", "reference", streams::Form::layer_norm},
                               {"no norm", "negative", streams::Form::none},
                               {"Pre-RMSNorm", "rms", streams::Form::rms_norm},
                               {"Pre-CRMSNorm", "crms", streams::Form::crms_norm},
                               {"Pre-CRMSNorm, same width", "other", streams::Form::crms_norm, 1}};
constexpr size_t kCount = std::size(kMethods), kNone = 1, kRms = 2;
constexpr int kFewest = 11;  // fewest rounds per cell

struct Budget {
  double seconds, bytes;  // per cell
};

// A model with its inputs, ready to run.
class Runner {
 public:
  Runner(const PaperCell& c, const Method& m, Device device) : training_(c.training) {
    manual_seed(1);
    Generator g{.seed = 1};
    if (c.image) {
      nn::VitOptions o = nn::vit_preset(c.size);
      fit(o.transformer, c, m);
      model_ = std::make_unique<nn::Vit>(streams::make<nn::Vit>(o, {.form = m.form}));
      batch_ = {randn({c.batch, o.image, o.image, o.channels}, {}, g), randint(0, o.classes, {c.batch}, kCpu, g)};
    } else {
      nn::GptOptions o = nn::gpt_preset(c.size);
      o.context = c.length;
      fit(o.transformer, c, m);
      model_ = std::make_unique<nn::Gpt>(streams::make<nn::Gpt>(o, {.form = m.form}));
      batch_ = {randint(0, o.vocab, {c.batch, c.length}, kCpu, g), randint(0, o.vocab, {c.batch, c.length}, kCpu, g)};
    }
    model_->to(device);
    batch_ = batch_.on(device);
    if (training_) {
      optimizer_ = std::make_unique<optim::AdamW>(model_->parameters(), optim::AdamWOptions{.lr = 1e-3});
      step_ = std::make_unique<training::Step>(*model_, *optimizer_);
    } else {
      model_->eval();
      model_->prepare_inference();
    }
  }

  double seconds() {
    const Stopwatch watch;
    if (training_) {
      (*step_)(batch_);
    } else {
      const NoGrad no_grad;
      const Tensor y = (*model_)(batch_.inputs);
      if (y.device() != kCpu) y.to_vector<float>();  // waits for the device
    }
    return watch.seconds();
  }

 private:
  static void fit(nn::TransformerOptions& t, const PaperCell& c, const Method& m) {
    t = c.transformer();  // heads and MLP keep the paper's width
    t.width += m.wider;
  }

  bool training_;
  std::unique_ptr<nn::Module> model_;
  training::Examples batch_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<training::Step> step_;
};

// Times all methods, in turns.
Turns timed(const PaperCell& c, const Budget& budget, const ExperimentOptions& o) {
  std::vector<Runner> all;
  for (const Method& m : kMethods) all.emplace_back(c, m, o.device);
  std::vector<std::function<double()>> works;
  for (Runner& r : all) works.push_back([&] { return o.go_on(), r.seconds(); });
  return in_turns(works, {.seconds = budget.seconds, .fewest = kFewest});
}

// Results of the inference cells or of the training cells, and the sentence that sums them up.
struct Shown {
  const char* name;
  int cells = 0;
  double logs[kCount] = {};
  Lead rms = {}, none = {};  // Pre-RMSNorm against Pre-LN; no norm against Pre-RMSNorm

  void take(const Turns& t) {
    ++cells;
    for (size_t m = 0; m < kCount; ++m) logs[m] += std::log(t.ratio[m].median);
    rms.count(t.ratio[kRms], t.ratio[0]);
    none.count(t.ratio[kNone], t.ratio[kRms]);
  }
  std::string sentence() const {
    const auto mean = [&](size_t m) { return printed("%.3f", std::exp(logs[m] / std::max(1, cells))); };
    return text("In ", cells, " cells of ", name, " Pre-RMSNorm is faster than Pre-LN in ", rms.ahead,
                " and slower in ", rms.behind, " beyond the intervals, no norm faster than Pre-RMSNorm in ", none.ahead,
                " and slower in ", none.behind, "; in the geometric mean no norm takes ", mean(kNone),
                " of Pre-LN's time, Pre-RMSNorm ", mean(kRms), ", Pre-CRMSNorm ", mean(3), ", of the same width ",
                mean(4), ". ");
  }
};

}  // namespace

ExperimentResult paper_speed(const ExperimentOptions& o) {
  const Budget budget = o.full ? Budget{20, 16e9} : Budget{5, 8e9};
  ExperimentResult r;
  reports::TextTable table{.heading = "Times of a forward, and of a step of training"};
  table.columns = {"model, examples", "Pre-LN ms"};
  for (size_t m = 1; m < kCount; ++m) table.columns.push_back(text(kMethods[m].name, " / Pre-LN"));
  table.columns.insert(table.columns.end(), {"paper: RMS / CRMS", "rounds"});
  reports::Chart chart{.title = "Time divided by Pre-LN's", .axis = "cell", .width = 660};
  for (size_t m = 1; m < kCount; ++m) chart.lines.push_back({kMethods[m].name, kMethods[m].css, {}});
  std::string left_out;
  double rate = 0;  // operations per second, from the last cell
  int done = 0;
  Shown shown[] = {{"inference"}, {"training"}};
  for (const PaperCell& c : paper_cells(o.full)) {
    // A cell that is too large or too slow is listed as left out. Its time is estimated from the last cell's rate.
    const double expected = rate > 0 ? (kFewest + 1) * static_cast<double>(kCount) * c.operations() / rate : 0;
    const bool large = c.bytes(kCount) > budget.bytes;
    if (large || expected > 2 * budget.seconds) {
      left_out += text(left_out.empty() ? "" : "; ", c.name(), large ? " (memory)" : " (time)");
      continue;
    }
    o.tell(text("timing ", c.name()));
    const Turns t = timed(c, budget, o);
    rate = c.operations() / t.seconds, ++done;
    std::vector<reports::TextCell> row = {{c.name()}, reports::printed_cell("%.2f", 1e3 * t.seconds)};
    for (size_t m = 1; m < kCount; ++m) {
      row.push_back(ratio_cell(t.ratio[m], 3));
      chart.lines[m - 1].values.push_back(t.ratio[m].median);
    }
    shown[c.training].take(t);
    row.push_back({c.published()});
    row.push_back({text(t.rounds)});
    table.rows.push_back(std::move(row));
    chart.ticks.push_back(text(done));
  }
  table.caption =
      text("Medians of the ratio, with their intervals of 99.8 %, to Pre-LN in the same round; f32, ", machine_text(),
           ", ", o.device, ". No norm leaves out the last one, too. Pre-CRMSNorm stores ",
           "d - 1 of d entries; with the same stored width it is Pre-LN of d + 1. In the paper, average over ViTs and "
           "batches on ",
           "16 CPU threads, inference: 0.8697 without norm, 0.9012, 0.8857 (table 3); its ratios here are of GPUs.");
  chart.steps = done;
  reports::fit_axis(chart);
  r.tables = {std::move(table)};
  r.figures = {{.name = "times",
                .heading = "Time divided by Pre-LN's",
                .panels = {panel_of(std::move(chart))},
                .caption = "A cell for each row of the table, in its order."}};
  r.confirmed = true;
  bool lost = false;
  for (const Shown& part : shown)
    for (const Lead& lead : {part.rms, part.none}) {
      r.confirmed = r.confirmed && lead.kept();
      lost = lost || lead.lost();
    }
  r.undecided = !r.confirmed && !lost;
  r.measured =
      text(shown[0].sentence(), shown[1].sentence(), left_out.empty() ? "" : text("Left out: ", left_out, "."));
  r.refuted =
      "more cells of inference, or of training, in which Pre-RMSNorm is slower than Pre-LN, or no norm slower than "
      "Pre-RMSNorm, than cells in which it is faster";
  return r;
}

}  // namespace isonorm::papers
