#include "training/run/trainer_options.h"

#include <algorithm>

#include "core/printed.h"
#include "core/system/failures.h"
#include "core/system/foreign_text.h"
#include "streams/stream.h"
#include "training/fields.h"

namespace isonorm::training {

template <> struct Word<Interval> {
  static std::string values() { return "STEPS/TIME"; }
  static std::string expected(Limits) { return "a number of steps, or a time such as 30s, 10m or 2h"; }
  static std::string written(const Interval& i) { return i.seconds > 0 ? shortest(i.seconds) + "s" : text(i.steps); }
  static bool read(const std::string& word, Interval& value) {
    const std::optional<Interval> interval = Interval::read(word);
    if (interval) value = *interval;
    return interval.has_value();
  }
  static bool allowed(const Interval&, Limits) { return true; }
};

namespace {

// Options that do not change the content of a checkpoint, and the data, which a checksum identifies.
constexpr std::string_view kNotRecorded[] = {"data",     "test_data",      "tokenizer", "threads",
                                             "ranks",    "rank_invariant", "zero",      "device",
                                             "captured", "any_order",      "save_every"};
constexpr std::string_view kKeptOptions[] = {"evaluate_every", "patience"};

}  // namespace

TrainerOptions::TrainerOptions() {
  training.model.stream().form = streams::Form::rms_norm;
  training.steps = 6000;
  training.dtype = DType::f32;
}

void fields(TrainerOptions& o, Fields& f) {
  f.group = "Precision and devices";
  f("activations", o.activations, "dtype of activations saved for the backward: bf16 takes half the memory of f32");
  f("captured", o.captured, "with --device cuda: record the step as a CUDA graph and replay it");
  f("any_order", o.any_order,
    "with --device cuda: sum in any order if that is faster; two runs then differ by rounding");
  f.group = "Optimizer";
  f("ema_warmup", o.ema_warmup,
    "keep the decay of --ema constant (default: update t = 1, 2, ... has at most (1 + t) / (10 + t))");
  f.group = "Checkpoints and evaluation";
  f("save_every", o.save_every, "save after every N steps, or after a time such as 30s, 10m or 2h; 0: only at the end");
  f("evaluate_every", o.evaluate_every, "evaluate on the test data after every N steps; 0: only at the end");
  f("patience", o.patience, "stop after N evaluations without a lower test loss; 0: run all --steps");
}

std::vector<Option> all_options(TrainerOptions& o) {
  Fields f{options_of(o.training)};
  fields(o, f);
  return std::move(f.options);
}

OptionList given_of(const TrainerOptions& o) {
  TrainerOptions shown = o, defaults;
  ModelOptions model(o.training.model.row());
  model.stream() = defaults.training.model.stream();
  defaults.training.model = model;
  defaults.training.warmup = TrainingOptions::default_warmup(shown.training.step_count());
  shown.training.ranks = 1;
  if (!o.training.test_data.empty()) shown.training.test_share = defaults.training.test_share;  // not used
  OptionList all = given(all_options(shown), all_options(defaults));
  all.insert(all.begin(), {"--model", model.row().name});
  if (!o.init.empty()) all.emplace_back("--init", o.init);
  if (o.extend_alphabet) all.emplace_back("--extend-alphabet", "");
  return all;
}

Manifest manifest_of(const TrainerOptions& o, const Source& source) {
  Manifest m = manifest_of(source.options());
  m.data_sha256 = source.sha256();
  m.options.emplace_back("init", o.init);
  TrainerOptions given = o;
  Fields own;
  fields(given, own);
  for (const Option& option : own.options) m.options.emplace_back(option.name, option.text());
  const int ranks = o.training.ranks;
  m.command = text(ranks > 1 ? text("mpirun -np ", ranks, " ") : "", "isonorm train", said(given_of(o)));
  return m;
}

bool is_kept(std::string_view name) { return std::ranges::count(kKeptOptions, name) > 0; }

bool is_of_identity(std::string_view name) { return std::ranges::count(kNotRecorded, name) == 0 && !is_kept(name); }

void set_as_trained(TrainerOptions& o, const Metadata& values) {
  o.training.spec = DataSpec::of(values);
  Fields f;
  fields(o.training, f), fields(o, f);
  for (const Option& option : f.options)
    if (const auto said = values.find(option.name);
        said != values.end() && (is_of_identity(option.name) || is_kept(option.name)) && is_of_train(option.name))
      check(option.set(said->second), "it was trained with ", word_of(option.name), " ", Shown{said->second},
            ", expected ", option.expected);
}

void check_options(const TrainerOptions& o) {
  TrainerOptions copy = o;
  Fields f;
  fields(copy.training, f), fields(copy, f);
  for (const Option& option : f.options)
    if (const std::string value = option.text(); !option.set(value))
      throw UsageError(text(word_of(option.name), ": ", value, ", expected ", option.expected));
  if (o.extend_alphabet && o.init.empty()) throw UsageError("--extend-alphabet needs --init");
  if (o.extend && o.checkpoint.empty()) throw UsageError("--extend needs --checkpoint");
  if (!o.average.empty() && o.training.ema == 0) throw UsageError("--ema-file needs --ema");
  if (!o.best.empty() && o.evaluate_every == 0) throw UsageError("--best needs --evaluate-every");
  if (o.patience > 0 && o.evaluate_every == 0) throw UsageError("--patience needs --evaluate-every");
}

}  // namespace isonorm::training
