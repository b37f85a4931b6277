#include "equivalence/certificate/certificate.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <mutex>
#include <thread>

#include "core/system/parallel.h"
#include "equivalence/lockstep/criterion.h"
#include "equivalence/probes/rounding_model.h"

namespace isonorm::equivalence {
namespace {

// The parts of the work, done by several threads.
class Work {
 public:
  using Item = std::function<void(const Continue&)>;
  void add(std::string what, int steps, Item item) {
    items_.push_back({std::move(what), std::move(item)});
    steps_ += steps;
  }

  // Returns false where `progress` stopped it. Rethrows what an item throws.
  bool run(int threads, const std::function<bool(const CertificateProgress&)>& progress) {
    progress_ = progress;
    const int before = num_threads();
    set_num_threads(1);
    threads = std::min(threads, static_cast<int>(items_.size()));
    std::latch ready(threads);
    const auto thread = [&] {
      {
        const std::lock_guard lock(mutex_);
        set_num_threads(1);  // every thread has a number of its own
      }
      ready.arrive_and_wait();
      work();
    };
    std::vector<std::thread> pool;
    pool.reserve(static_cast<size_t>(threads));
    for (int t = 0; t < threads; ++t) try {
        pool.emplace_back(thread);
      } catch (...) {  // the system has no more: those that there are do the work, which does not depend on how many
        ready.count_down(threads - t);
        if (pool.empty()) throw;
        break;
      }
    for (std::thread& t : pool) t.join();
    set_num_threads(before);
    if (error_) std::rethrow_exception(error_);
    return !stop_;
  }

 private:
  struct Named {
    std::string what;
    Item item;
  };

  void work() {
    for (size_t i = next_++; i < items_.size() && !stop_; i = next_++) {
      try {
        items_[i].item([&] { return report(items_[i].what); });
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
        stop_ = true;
      }
    }
  }

  bool report(const std::string& what) {
    const std::lock_guard lock(mutex_);
    ++step_;
    if (!stop_ && progress_ && !progress_({what, step_, steps_, seconds()})) stop_ = true;
    return !stop_;
  }

  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

  std::vector<Named> items_;
  std::function<bool(const CertificateProgress&)> progress_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;  // of what follows
  std::exception_ptr error_;
  int step_ = 0, steps_ = 0;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

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
  for (const auto& [name, value] : m.options) m.command += text(" --", name, " ", training::quoted(value));
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

namespace {

Architecture on(Device device, Architecture a) {
  a.device = device;
  return a;
}

}  // namespace

CertificateResult certify(const CertificateOptions& options,
                          const std::function<bool(const CertificateProgress&)>& progress) {
  CertificateOptions o = options;
  for (auto* list : {&o.architectures, &o.resolved})
    for (Architecture& a : *list) a.device = o.device;
  for (NegativeControl& n : o.negative_controls) n.device = o.device;
  check(!o.architectures.empty() && o.steps > 0 && o.controls > 0 && o.points > 0,
        "certificate: ", o.architectures.size(), " architectures, ", o.steps, " steps, ", o.controls, " controls and ",
        o.points, " points, expected at least 1 of each");
  for (const Architecture& a : o.architectures) {
    check(a.name && a.model, "certificate: an architecture has no ", a.name ? "model" : "name");
    check(std::count_if(o.architectures.begin(), o.architectures.end(),
                        [&](const Architecture& b) { return b.name && std::string_view(a.name) == b.name; }) == 1,
          "certificate: the architecture ", a.name, " is there twice");
  }
  const auto begin = std::chrono::steady_clock::now();
  const int threads = o.threads > 0 ? o.threads : num_threads();
  CertificateResult result;
  result.options = o;
  result.manifest = manifest_of(o, threads);
  // Every item writes to a place of its own; the longest come first.
  const size_t count = o.architectures.size();
  result.trajectories.resize(std::size(kTrained) * count);
  const std::vector<Architecture> looked_at = o.looked_at();
  const size_t looked = looked_at.size();
  result.gradients.resize(std::size(kLookedAt) * looked);
  result.width2.resize(std::size(kLookedAt));
  result.negatives.resize(std::size(kTrained) * o.negative_controls.size());
  result.resolutions.reserve(std::size(kTrained) * std::size(kFaults) * o.resolved.size());  // they stay where they are
  Work work;
  for (size_t d = 0; d < std::size(kTrained); ++d)
    for (size_t i = 0; i < count; ++i) {
      const Architecture& a = o.architectures[i];
      const DType dtype = kTrained[d];
      work.add(text(a.name, " in ", name_of(dtype)), o.steps_in(dtype), [&, d, i, dtype](const Continue& go_on) {
        result.trajectories[d * count + i] =
            train_architecture(o.architectures[i], dtype, o.steps_in(dtype), o.controls, o.seed, go_on);
      });
    }
  const std::vector<Regime> beside = o.trained_regimes();
  result.regimes.resize(std::size(kTrained) * beside.size());
  for (size_t d = 0; d < std::size(kTrained); ++d)
    for (size_t i = 0; i < beside.size(); ++i) {
      const DType dtype = kTrained[d];
      work.add(text(beside[i].architecture, " with ", beside[i].name), o.steps_in(dtype),
               [&, d, i, dtype](const Continue& go_on) {
                 result.regimes[d * beside.size() + i] =
                     train_architecture(on(o.device, architecture(beside[i].architecture)), dtype, o.steps_in(dtype),
                                        o.controls, o.seed, go_on, &beside[i]);
               });
    }
  for (size_t d = 0; d < std::size(kLookedAt); ++d)
    for (size_t i = 0; i <= looked; ++i) {
      const bool degenerate = i == looked;
      const Architecture a = on(o.device, degenerate ? kWidth2 : looked_at[i]);
      const DType dtype = kLookedAt[d];
      PointErrors& place = degenerate ? result.width2[d] : result.gradients[d * looked + i];
      work.add(text(degenerate ? "values of " : "gradients of ", a.name, " in ", name_of(dtype)), o.points,
               [&, a, dtype, degenerate](const Continue& go_on) {
                 place =
                     point_errors(a, dtype, degenerate ? Looked::logits : Looked::gradients, o.points, o.seed, go_on);
               });
    }
  const size_t wrong = o.negative_controls.size();
  for (size_t i = 0; i < wrong; ++i)
    work.add(text("negative control: ", o.negative_controls[i].name),
             kNegativeSteps * static_cast<int>(std::size(kTrained)), [&, i](const Continue& go_on) {
               for (size_t d = 0; d < std::size(kTrained); ++d)
                 result.negatives[d * wrong + i] = run_negative(o.negative_controls[i], kTrained[d], o.controls, o.seed,
                                                                d == 0 ? nullptr : &result.negatives[i], go_on);
             });
  for (DType dtype : kTrained)
    for (Fault fault : kFaults)
      for (const Architecture& a : o.resolved) {
        Resolution& place = result.resolutions.emplace_back();
        work.add(text("smallest fault in ", name_of(dtype), ": ", description(fault)), kNegativeSteps,
                 [&, dtype, fault](const Continue& go_on) {
                   place = smallest_fault(fault, a, dtype, o.controls, o.seed, go_on);
                 });
      }
  result.interrupted = !work.run(threads, progress);
  if (!result.interrupted) conclude(result);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace isonorm::equivalence
