#include "equivalence/prove.h"

#include <chrono>
#include <map>

#include "core/parallel.h"
#include "core/random.h"
#include "equivalence/criterion.h"
#include "equivalence/parametrisation.h"
#include "equivalence/source.h"
#include "equivalence/trainee.h"
#include "optim/schedule.h"

namespace isonorm::equivalence {
namespace {

using nn::Stream;
using nn::StreamForm;
using nn::StreamStorage;

constexpr int64_t kTestRows = 250;  // images of one forward in the test pass

// Runs that train in step with a reference: controls of the reference, and runs to be judged.
struct Group {
  std::unique_ptr<Trainee> reference;
  std::vector<std::unique_ptr<Trainee>> controls, runs;
};

class Proof {
 public:
  Proof(const ProofOptions& o, const ProgressCallback& progress) : o_(o), progress_(progress), source_(o) {
    result_.options = o;
    result_.manifest = manifest_of(o);
    result_.manifest.data_sha256 =
        sha256_of_files(o.model == ModelKind::vit ? data::FashionMnist::files(o.data) : std::vector{o.data});
    manual_seed(o.seed);
    initial_ = build_model(o, source_.shape(), Stream(StreamForm::layer_norm, o.width));
    const int runs = 1 + o.controls + static_cast<int>(o.forms.size());
    const int negative = 1 + o.controls + static_cast<int>(negatives().size());
    const double test_steps =
        0.3 * static_cast<double>(source_.test_count()) / o.batch;  // a forward costs a third of a step
    work_ = o.step_count() * runs + kNegativeSteps * negative + test_steps * runs;
  }

  ProofResult run() {
    // One record per run first: a progress callback sees them all.
    for (int c = 0; c < o_.controls; ++c)
      result_.controls.push_back(record(StreamForm::layer_norm, Parametrisation::raw, c + 1));
    for (const std::string& f : o_.forms) result_.runs.push_back(record(nn::stream_form(f), Parametrisation::raw, 0));
    result_.reference = record(StreamForm::layer_norm, Parametrisation::raw, 0);
    const optim::Schedule schedule{
        .peak = o_.lr, .warmup = std::min(o_.warmup, o_.step_count()), .steps = o_.step_count()};
    Group group = make_group(result_.runs);
    if (!train(
            group, Phase::training, o_.step_count(), [&](int t) { return schedule.lr(t); }, result_.controls,
            result_.runs, result_.reference))
      return stop();
    if (!test(group)) return stop();
    group = {};

    std::vector<RunResult> negative = negatives(), controls = result_.controls;
    for (RunResult& c : controls) c.deviations = {}, c.losses.clear();
    RunResult& reference = result_.negative_reference = record(StreamForm::layer_norm, Parametrisation::raw, 0);
    group = make_group(negative);
    const size_t first = result_.runs.size();
    result_.runs.insert(result_.runs.end(), negative.begin(), negative.end());
    const std::span<RunResult> runs = std::span(result_.runs).subspan(first);
    if (!train(
            group, Phase::negative, kNegativeSteps, [&](int) { return o_.lr; }, controls, runs, reference))
      return stop();
    for (RunResult& r : runs) r.control = running_maximum(controls);
    conclude(result_);
    result_.seconds = seconds();
    return std::move(result_);
  }

 private:
  // What must come out different. Compressed weights cannot hold a learned gain apart from their readers.
  std::vector<RunResult> negatives() const {
    std::vector<RunResult> out = {record(StreamForm::rms_norm, Parametrisation::projected_once, 0)};
    if (!o_.affine) out.push_back(record(StreamForm::crms_norm, Parametrisation::compressed_plain, 0));
    for (RunResult& r : out) r.expected = Verdict::different;
    return out;
  }

  RunResult record(StreamForm form, Parametrisation p, uint64_t seed) const {
    RunResult r;
    r.form = nn::name_of(form);
    r.parametrisation = p;
    r.seed = seed;
    return r;
  }

  std::unique_ptr<Trainee> trainee(const RunResult& r) const {
    const bool raw = r.parametrisation == Parametrisation::raw;
    const Stream stream(nn::stream_form(r.form), o_.width, raw ? StreamStorage::raw : StreamStorage::mapped);
    auto t = std::make_unique<Trainee>(o_, source_.shape(), stream);
    t->model().load_state_dict(raw ? initial_->state_dict() : mapped_state(*initial_, stream));
    if (r.seed != 0) move_by_one_ulp(t->model(), r.seed);
    return t;
  }

  Group make_group(std::vector<RunResult>& runs) {
    Group g;
    g.reference = trainee(result_.reference);
    result_.reference.parameters = g.reference->model().parameter_count();
    for (RunResult& c : result_.controls) {
      g.controls.push_back(trainee(c));
      c.parameters = g.controls.back()->model().parameter_count();
    }
    for (RunResult& r : runs) {
      g.runs.push_back(trainee(r));
      r.parameters = g.runs.back()->model().parameter_count();
    }
    return g;
  }

  template <class Rate>
  bool train(Group& g, Phase phase, int steps, Rate rate, std::vector<RunResult>& controls, std::span<RunResult> runs,
             RunResult& reference) {
    double worst = 0, worst_control = 0;
    for (int t = 0; t < steps; ++t) {
      const Examples batch = source_.batch(t);
      g.reference->differentiate(batch);
      g.reference->update(rate(t));
      reference.losses.push_back(g.reference->loss());
      const auto follow = [&](Trainee& trainee, RunResult& r, double& largest) {
        trainee.differentiate(batch);
        trainee.update(rate(t));
        const double base = g.reference->loss();
        const double d[] = {std::abs(trainee.loss() - base) / std::abs(base), trainee.gradient_deviation(*g.reference),
                            trainee.weight_deviation(*g.reference)};
        r.losses.push_back(trainee.loss());
        r.deviations.loss.push_back(d[0]);
        r.deviations.gradient.push_back(d[1]);
        r.deviations.weight.push_back(d[2]);
        for (double v : d) largest = larger(largest, v);
        done_ += 1;
      };
      for (size_t i = 0; i < g.controls.size(); ++i) follow(*g.controls[i], controls[i], worst_control);
      for (size_t i = 0; i < g.runs.size(); ++i) follow(*g.runs[i], runs[i], worst);
      done_ += 1;
      if (!report(phase, t + 1, steps, reference.losses.back(), worst, worst_control, rate(t))) return false;
    }
    return true;
  }

  // Accuracy of every run on the test images, and where its predictions differ from the reference's.
  bool test(Group& g) {
    const int64_t n = source_.test_count();
    if (n == 0) return true;
    result_.test_count = n;
    std::vector<std::pair<Trainee*, RunResult*>> all = {{g.reference.get(), &result_.reference}};
    for (size_t i = 0; i < g.controls.size(); ++i) all.emplace_back(g.controls[i].get(), &result_.controls[i]);
    for (size_t i = 0; i < g.runs.size(); ++i) all.emplace_back(g.runs[i].get(), &result_.runs[i]);
    std::vector<int64_t> right(all.size()), differing(all.size());
    const int passes = static_cast<int>((n + kTestRows - 1) / kTestRows);
    for (int pass = 0; pass < passes; ++pass) {
      const int64_t begin = pass * kTestRows, rows = std::min(kTestRows, n - begin);
      const Examples batch = source_.test_rows(begin, rows);
      const std::vector<int64_t> labels = batch.targets.to_vector<int64_t>();
      std::vector<int64_t> base;
      for (size_t r = 0; r < all.size(); ++r) {
        const std::vector<int64_t> predicted = all[r].first->predict(batch.inputs);
        if (r == 0) base = predicted;
        for (int64_t i = 0; i < rows; ++i) {
          right[r] += predicted[i] == labels[i];
          differing[r] += predicted[i] != base[i];
        }
      }
      done_ += 0.3 * static_cast<double>(rows * static_cast<int64_t>(all.size())) / o_.batch;
      if (!report(Phase::testing, pass + 1, passes, result_.reference.losses.back(), 0, 0, 0)) return false;
    }
    for (size_t r = 0; r < all.size(); ++r) {
      all[r].second->accuracy = static_cast<double>(right[r]) / static_cast<double>(n);
      all[r].second->differing_predictions = differing[r];
    }
    return true;
  }

  bool report(Phase phase, int step, int steps, double loss, double deviation, double control, double lr) {
    if (!progress_) return true;
    return progress_(
        {phase, step, steps, loss, deviation, control, lr, seconds(), std::min(1.0, done_ / work_), result_});
  }

  ProofResult stop() {
    result_.interrupted = true;
    conclude(result_);
    result_.seconds = seconds();
    return std::move(result_);
  }

  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

  ProofOptions o_;
  const ProgressCallback& progress_;
  Source source_;
  std::unique_ptr<nn::Module> initial_;
  ProofResult result_;
  double work_ = 1, done_ = 0;  // in training steps of one run
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

ProofResult prove(const ProofOptions& options, const ProgressCallback& progress) {
  check(options.step_count() > 0 && options.batch > 0, "prove: ", options.step_count(), " steps of ", options.batch,
        " examples, expected at least 1 of each");
  check(options.controls > 0, "prove: ", options.controls, " controls, expected at least 1");
  check(options.dtype == DType::f32 || options.dtype == DType::f64, "prove: dtype is ", options.dtype,
        ", expected f32 or f64");
  if (options.threads > 0) set_num_threads(options.threads);
  return Proof(options, progress).run();
}

}  // namespace isonorm::equivalence
