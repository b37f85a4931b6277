#include "lab/certificate/certificate.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "core/system/foreign_text.h"
#include "core/system/stopwatch.h"
#include "equivalence/judge/criterion.h"
#include "equivalence/lockstep/share_out.h"
#include "lab/probes/rounding_model.h"

namespace isonorm::equivalence {
namespace {

using Progress = std::function<bool(const CertificateProgress&)>;

struct Part {
  std::string what;
  int steps;
  std::function<void(const Continue&)> work;
};

// Sets the number of threads while it lives.
struct Threads {
  explicit Threads(int n) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
  const int before = num_threads();
};

// Does the parts, each in one thread. Returns false if `progress` stopped it.
bool done(const std::vector<Part>& parts, int threads, const Progress& progress) {
  const Stopwatch watch;
  int step = 0, steps = 0;
  for (const Part& part : parts) steps += part.steps;
  std::mutex mutex;
  std::atomic<bool> stopped = false;
  const Threads shared_by(threads);
  share_out(parts.size(), [&](size_t i) {
    if (stopped) return;
    parts[i].work([&] {
      const std::lock_guard lock(mutex);
      ++step;
      if (!stopped && progress && !progress({parts[i].what, step, steps, watch.seconds()})) stopped = true;
      return !stopped;
    });
  });
  return !stopped;
}

training::Manifest manifest_of(const CertificateOptions& o, int threads) {
  std::string names;
  for (const Architecture& a : o.architectures) names += text(names.empty() ? "" : ",", name_of(a));
  training::TrainingOptions shared;
  shared.seed = o.seed;
  shared.threads = threads;
  shared.device = o.device;
  training::Manifest m = manifest_of(shared);
  m.dtype = "f64, f32, bf16";
  m.options = {{"architectures", names},
               {"steps", text(o.steps)},
               {"controls", text(o.controls)},
               {"seed", text(o.seed)},
               {"threads", text(threads)}};
  if (o.device != kCpu) m.options.emplace_back("device", text(o.device));
  m.command = "isonorm prove --certificate";
  for (const auto& [name, value] : m.options) m.command += text(" --", name, " ", shell_word(value));
  return m;
}

}  // namespace

std::vector<Regime> CertificateOptions::trained_regimes() const {
  std::vector<Regime> trained;
  for (const Regime& regime : regimes)
    for (const Architecture& a : architectures)
      if (std::string_view(regime.architecture) == a.name && !from_outside(a)) trained.push_back(regime);
  return trained;
}

bool CertificateOptions::looks_at(const Architecture& a) const {
  return RoundingModel::writes_out(training_options(a, DType::f64, seed));
}

std::vector<Architecture> CertificateOptions::looked_at() const {
  std::vector<Architecture> all;
  for (const Architecture& a : architectures)
    if (looks_at(a)) all.push_back(a);
  return all;
}

CertificateResult certify(const CertificateOptions& options, const Progress& progress) {
  CertificateOptions o = options;
  for (auto* list : {&o.architectures, &o.resolved})
    for (Architecture& a : *list) a.device = o.device;
  for (NegativeControlRow& n : o.negative_controls) n.device = o.device;
  check(!o.architectures.empty() && o.steps > 0 && o.controls > 0 && o.points > 0,
        "certificate: ", o.architectures.size(), " architectures, ", o.steps, " steps, ", o.controls, " controls and ",
        o.points, " points, expected at least 1 of each");
  for (const Architecture& a : o.architectures) {
    check(a.name && a.model, "certificate: an architecture has no ", a.name ? "model" : "name");
    check(std::count_if(o.architectures.begin(), o.architectures.end(),
                        [&](const Architecture& b) { return b.name && std::string_view(a.name) == b.name; }) == 1,
          "certificate: the architecture ", a.name, " is there twice");
  }
  const Stopwatch watch;
  const int threads = o.threads > 0 ? o.threads : num_threads();
  CertificateResult result;
  result.options = o;
  result.manifest = manifest_of(o, threads);
  // Every part writes to its own place in a vector that does not move.
  std::vector<Part> parts;
  const std::vector<Regime> beside = o.trained_regimes();
  const std::vector<Architecture> looked_at = o.looked_at();
  result.trajectories.reserve(std::size(kTrained) * o.architectures.size());
  result.regimes.reserve(std::size(kTrained) * beside.size());
  const auto add_training = [&](std::vector<Trajectory>& to, Architecture a, DType dtype, const Regime* regime) {
    Trajectory& place = to.emplace_back();
    a.device = o.device;
    parts.push_back({text(a.name, regime ? text(" with ", regime->name) : "", " in ", name_of(dtype)),
                     o.steps_in(dtype), [&, a, dtype, regime](const Continue& go_on) {
                       place = train_architecture(a, dtype, o.steps_in(dtype), o.controls, o.seed, go_on, regime);
                     }});
  };
  for (DType dtype : kTrained)
    for (const Architecture& a : o.architectures) add_training(result.trajectories, a, dtype, nullptr);
  for (DType dtype : kTrained)
    for (const Regime& regime : beside) add_training(result.regimes, architecture(regime.architecture), dtype, &regime);
  result.gradients.reserve(std::size(kLookedAt) * looked_at.size());
  result.width2.reserve(std::size(kLookedAt));
  const auto add_points = [&](std::vector<PointErrors>& to, Architecture a, DType dtype, Looked looked) {
    PointErrors& place = to.emplace_back();
    a.device = o.device;
    parts.push_back({text(looked == Looked::logits ? "values of " : "gradients of ", a.name, " in ", name_of(dtype)),
                     o.points, [&, a, dtype, looked](const Continue& go_on) {
                       place = point_errors(a, dtype, looked, o.points, o.seed, go_on);
                     }});
  };
  for (DType dtype : kLookedAt) {
    for (const Architecture& a : looked_at) add_points(result.gradients, a, dtype, Looked::gradients);
    add_points(result.width2, kWidth2, dtype, Looked::logits);
  }
  const size_t wrong = o.negative_controls.size();
  result.negatives.resize(std::size(kTrained) * wrong);
  for (size_t i = 0; i < wrong; ++i)
    parts.push_back({text("negative control: ", o.negative_controls[i].name),
                     kNegativeSteps * static_cast<int>(std::size(kTrained)), [&, i](const Continue& go_on) {
                       for (size_t d = 0; d < std::size(kTrained); ++d)
                         result.negatives[d * wrong + i] =
                             run_negative(o.negative_controls[i], kTrained[d], o.controls, o.seed,
                                          d == 0 ? nullptr : &result.negatives[i], go_on);
                     }});
  result.detectable.reserve(std::size(kTrained) * std::size(kSizedMistakes) * o.resolved.size());
  for (DType dtype : kTrained)
    for (NegativeControl mistake : kSizedMistakes)
      for (const Architecture& a : o.resolved) {
        SmallestDetectable& place = result.detectable.emplace_back();
        parts.push_back({text("smallest detectable mistake in ", name_of(dtype), ": ", description(mistake)),
                         kNegativeSteps, [&, dtype, mistake](const Continue& go_on) {
                           place = equivalence::smallest_detectable(mistake, a, dtype, o.controls, o.seed, go_on);
                         }});
      }
  result.interrupted = !done(parts, threads, progress);
  if (!result.interrupted) conclude(result);
  result.seconds = watch.seconds();
  return result;
}

}  // namespace isonorm::equivalence
