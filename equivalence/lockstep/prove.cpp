#include "equivalence/lockstep/prove.h"

#include <map>

#include "core/random.h"
#include "core/system/foreign_text.h"
#include "core/system/parallel.h"
#include "core/system/stopwatch.h"
#include "equivalence/judge/criterion.h"
#include "equivalence/lockstep/lockstep.h"
#include "equivalence/lockstep/negative_control.h"
#include "optim/schedule.h"
#include "streams/stream.h"
#include "training/fields.h"
#include "training/from_outside.h"
#include "training/records/held_out.h"
#include "training/source.h"

namespace isonorm::equivalence {
namespace {

using streams::Form;
using streams::Stream;

training::OptionList option_list(const ProofOptions& o) {
  training::OptionList list = option_list(o.training);
  std::erase_if(list, [](const auto& option) { return training::is_of_streams(option.first); });  // see `forms`
  std::string forms;
  for (const std::string& form : o.forms) forms += (forms.empty() ? "" : ",") + form;
  list.insert(list.begin() + 1, {{"forms", forms}, {"controls", text(o.controls)}});
  if (o.against) list.emplace_back("against", text(*o.against));
  return list;
}

class Proof {
 public:
  Proof(const ProofOptions& options, const ProgressCallback& progress)
      : options_(options), progress_(progress), source_(options.training) {
    result_.options = options;
    result_.manifest = manifest_of(options);
    result_.manifest.data_sha256 = source_.sha256();
    manual_seed(o_.seed);
    initial_ = build_model(o_, {.form = Form::layer_norm});
    const int runs = 1 + options.controls + static_cast<int>(options.forms.size()) + (options.against ? 1 : 0);
    const int negative = 1 + options.controls + static_cast<int>(negative_control_records(o_).size());
    work_ = o_.step_count() * runs + kNegativeSteps * negative + test_steps() * runs;
  }

  ProofResult run() {
    // Makes one record per run first, so that a progress callback sees every run.
    result_.controls = control_records(options_.controls);
    for (const std::string& f : options_.forms) result_.runs.push_back(record(raw_variant(streams::form_named(f))));
    if (options_.against) {
      result_.runs.push_back(reference_record());
      result_.runs.back().device = options_.against;
      // Devices of the same kind add in the same order, so equal bits do not mean that a run was compared with itself.
      result_.runs.back().may_be_identical = options_.against->kind == options_.training.device.kind;
    }
    result_.reference = reference_record();
    const optim::Schedule schedule = o_.rates();
    {
      Lockstep all(o_, *initial_, result_.reference, result_.controls, result_.runs);
      if (!train(all, Phase::training, o_.step_count(), [&](int t) { return schedule.lr(t); })) return stop();
      if (!test(all)) return stop();
    }

    std::vector<RunResult> negative = negative_control_records(o_), controls = result_.controls;
    for (RunResult& c : controls) c.deviations = {}, c.losses.clear();
    RunResult& reference = result_.negative_reference = reference_record();
    const size_t first = result_.runs.size();
    result_.runs.insert(result_.runs.end(), negative.begin(), negative.end());
    const std::span<RunResult> runs = std::span(result_.runs).subspan(first);
    Lockstep all(o_, *initial_, reference, controls, {});
    add_negative_controls(all, o_, *initial_, runs, source_.batch(kNegativeSteps));
    if (!train(all, Phase::negative, kNegativeSteps, [&](int) { return o_.lr; })) return stop();
    for (RunResult& r : runs) r.control = running_maximum(controls);
    conclude(result_);
    result_.seconds = watch_.seconds();
    return std::move(result_);
  }

 private:
  template <class Rate> bool train(Lockstep& all, Phase phase, int steps, Rate rate) {
    const auto members = all.members();
    for (int t = 0; t < steps; ++t) {
      all.step(source_.batch(t), rate(t));
      done_ += static_cast<double>(members.size());
      if (!report(phase, t + 1, steps, members[0].record->losses.back(), all.deviation(), all.control_deviation(),
                  rate(t)))
        return false;
    }
    return true;
  }

  // Measures the accuracy of every run on test examples, and counts predictions that differ from the reference's.
  bool test(Lockstep& trained) {
    const auto members = trained.members();
    std::vector<nn::Module*> models;
    for (const Lockstep::Member& m : members) models.push_back(&m.training->model());
    const double before = done_;
    const std::optional<training::TestPass> pass = test_pass(source_, models, [&](int batch, int batches) {
      done_ = before + test_steps() * static_cast<double>(models.size()) * batch / batches;
      return report(Phase::testing, batch, batches, result_.reference.losses.back(), 0, 0, 0);
    });
    if (!pass) return false;
    result_.test_count = pass->predictions;
    for (size_t m = 0; m < members.size() && pass->predictions > 0; ++m) {
      members[m].record->accuracy = pass->accuracy(m);
      members[m].record->differing_predictions = pass->scores[m].differing;
    }
    return true;
  }

  // The cost of a run's test pass, in training steps: a forward costs a third of a step.
  double test_steps() const { return 0.3 * static_cast<double>(source_.test_count()) / o_.batch; }

  bool report(Phase phase, int step, int steps, double loss, double deviation, double control, double lr) {
    if (!progress_) return true;
    return progress_(
        {phase, step, steps, loss, deviation, control, lr, watch_.seconds(), std::min(1.0, done_ / work_), result_});
  }

  ProofResult stop() {
    result_.interrupted = true;
    conclude(result_);
    result_.seconds = watch_.seconds();
    return std::move(result_);
  }

  const ProofOptions options_;
  const ProgressCallback& progress_;
  training::Source source_;
  const training::TrainingOptions& o_ = source_.options();
  std::unique_ptr<nn::Module> initial_;
  ProofResult result_;
  double work_ = 1, done_ = 0;  // in training steps of a run
  const Stopwatch watch_;
};

}  // namespace

training::Manifest manifest_of(const ProofOptions& options) {
  training::Manifest m = manifest_of(options.training);
  m.options = option_list(options);
  training::TrainingOptions given = options.training, defaults = ProofOptions().training;
  defaults.model = training::ModelOptions(given.model.row());
  given.model.stream() = defaults.model.stream();
  m.command = text("isonorm prove --model ", shell_word(name_and_origin(given.model.row())),
                   training::said(options_of(given), options_of(defaults)));
  for (const auto& [name, value] : m.options)
    if ((name == "forms" && options.forms != ProofOptions().forms) ||
        (name == "controls" && options.controls != ProofOptions().controls) || name == "against")
      m.command += text(" --", name, " ", value);
  return m;
}

void conclude(ProofResult& proof) {
  for (RunResult& control : proof.controls) control.largest = largest(control.deviations);
  proof.control = running_maximum(proof.controls);
  proof.largest_control = largest(proof.control);
  std::vector<RunResult> negative;
  for (const RunResult& run : proof.runs)
    if (run.expected == Verdict::different && run.same_start) negative.push_back(run);
  const Magnitudes reached = reach(negative);
  proof.horizon = horizon(proof.control, reached, proof.options.training.dtype);
  for (RunResult& run : proof.runs)
    if (run.control.loss.empty()) run.control = proof.control;
  proof.verdict = judge(proof.runs, reached, proof.options.training.dtype);
  if (proof.interrupted) proof.verdict = Verdict::undecided;
}

ProofResult prove(const ProofOptions& options, const ProgressCallback& progress) {
  const training::TrainingOptions& o = options.training;
  check(o.step_count() > 0 && o.batch > 0, "prove: ", o.step_count(), " steps of ", o.batch,
        " examples, expected at least 1 of each");
  training::check_full_precision(options.training.model.transformer().precision, "prove");
  check_wide_enough(options.training.model.transformer().width, "prove");
  check(options.controls > 0, "prove: ", options.controls, " controls, expected at least 1");
  for (const std::string& form : options.forms)
    check(!row_of(streams::form_named(form)).raw(), "prove: layer_norm is the reference; to be held against it are ",
          streams::listed(streams::centred_forms(), " and "));
  check(o.dtype == DType::f32 || o.dtype == DType::f64, "prove: dtype is ", o.dtype, ", expected f32 or f64");
  check(!options.against || *options.against != o.device, "prove: against ", o.device,
        ", where the reference is trained, expected another device");
  if (o.threads > 0) set_num_threads(o.threads);
  return Proof(options, progress).run();
}

}  // namespace isonorm::equivalence
