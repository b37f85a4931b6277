#include "equivalence/certificate/certificate.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <latch>
#include <mutex>
#include <thread>

#include "core/parallel.h"

namespace isonorm::equivalence {
namespace {

constexpr DType kTrained[] = {DType::f64, DType::f32}, kLookedAt[] = {DType::f64, DType::f32, DType::bf16};

// Of width 2: a normalised row is (s, -s) with |s| near 1, so nothing but its sign is left and its gradient is almost
// 0.
constexpr Architecture kWidth2 = {
    "width 2", ModelKind::gpt, 2, 1, 1, 2, 8, nn::Activation::gelu, nn::Positions::learned, false, false, true};

void append(std::vector<double>& to, const std::vector<double>& more) { to.insert(to.end(), more.begin(), more.end()); }

std::vector<DTypeErrors> errors_by_dtype(const std::vector<PointErrors>& all) {
  std::vector<DTypeErrors> result;
  for (DType dtype : kLookedAt) {
    std::vector<double> own, plain, rounded, unrounded, forms[3];
    for (const PointErrors& e : all) {
      if (e.dtype != dtype) continue;
      append(own, e.own);
      append(plain, e.plain);
      for (size_t f = 0; f < std::size(forms); ++f) {
        append(forms[f], e.forms[f]);
        append(rounded, e.rounded[f]);
        if (!e.rounded[f].empty()) append(unrounded, e.forms[f]);
      }
    }
    DTypeErrors d{.dtype = dtype, .own = geometric_mean(own), .plain = geometric_mean(plain)};
    d.rounded = geometric_mean(rounded);
    d.unrounded = geometric_mean(unrounded);
    d.within = d.flat = true;
    for (size_t f = 0; f < std::size(forms); ++f) {
      d.forms[f] = geometric_mean(forms[f]);
      const double in_f64 = result.empty() ? d.forms[f] : result.front().forms[f];
      d.within = d.within && d.forms[f] <= d.limit();
      d.flat = d.flat && d.forms[f] <= 2 * in_f64;
    }
    d.plain_differs = plain.empty() || d.plain > d.limit();
    result.push_back(d);
  }
  return result;
}

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
    std::latch ready(threads);
    std::vector<std::thread> pool;
    for (int t = 0; t < threads; ++t)
      pool.emplace_back([&] {
        {
          const std::lock_guard lock(mutex_);
          set_num_threads(1);  // OpenMP counts for every thread of its own
        }
        ready.arrive_and_wait();
        work();
      });
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

Manifest manifest_of(const CertificateOptions& o, int threads) {
  std::string names;
  for (const Architecture& a : o.architectures) names += text(names.empty() ? "" : ",", a.name);
  ProofOptions shared;
  shared.seed = o.seed;
  shared.threads = threads;
  Manifest m = manifest_of(shared);
  m.verb = "prove --certificate";
  m.dtype = "f64, f32, bf16";
  m.options = {{"architectures", names},
               {"steps", text(o.steps)},
               {"controls", text(o.controls)},
               {"seed", text(o.seed)},
               {"threads", text(threads)}};
  return m;
}

}  // namespace

CertificateResult certify(const CertificateOptions& o,
                          const std::function<bool(const CertificateProgress&)>& progress) {
  check(!o.architectures.empty() && o.steps > 0 && o.controls > 0 && o.points > 0,
        "certificate: ", o.architectures.size(), " architectures, ", o.steps, " steps, ", o.controls, " controls and ",
        o.points, " points, expected at least 1 of each");
  const auto begin = std::chrono::steady_clock::now();
  const int threads = o.threads > 0 ? o.threads : num_threads();
  CertificateResult result;
  result.options = o;
  result.manifest = manifest_of(o, threads);
  // Every item writes to a place of its own; the longest come first.
  const size_t count = o.architectures.size();
  result.trajectories.resize(std::size(kTrained) * count);
  result.gradients.resize(std::size(kLookedAt) * count);
  result.width2.resize(std::size(kLookedAt));
  result.negatives.resize(o.negative_controls.size());
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
  for (size_t d = 0; d < std::size(kLookedAt); ++d)
    for (size_t i = 0; i <= count; ++i) {
      const bool degenerate = i == count;
      const Architecture& a = degenerate ? kWidth2 : o.architectures[i];
      const DType dtype = kLookedAt[d];
      PointErrors& place = degenerate ? result.width2[d] : result.gradients[d * count + i];
      work.add(text(degenerate ? "values of " : "gradients of ", a.name, " in ", name_of(dtype)), o.points,
               [&, dtype, degenerate](const Continue& go_on) {
                 const Looked looked = degenerate ? Looked::logits : Looked::gradients;
                 place = point_errors(a, dtype, looked, o.points, o.seed, go_on);
               });
    }
  for (size_t i = 0; i < o.negative_controls.size(); ++i)
    work.add(text("negative control: ", o.negative_controls[i].name), kNegativeSteps, [&, i](const Continue& go_on) {
      result.negatives[i] = run_negative(o.negative_controls[i], o.controls, o.seed, go_on);
    });
  result.interrupted = !work.run(threads, progress);
  if (!result.interrupted) conclude(result);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

void conclude(CertificateResult& r) {
  r.gradient_errors = errors_by_dtype(r.gradients);
  r.width2_errors = errors_by_dtype(r.width2);
  const auto good = [](const auto& parts) {
    return !parts.empty() && std::all_of(parts.begin(), parts.end(), [](const auto& p) { return p.as_expected; });
  };
  r.certified = good(r.trajectories) && good(r.negatives);
  for (const DTypeErrors& d : r.gradient_errors) r.certified = r.certified && d.within && d.flat && d.plain_differs;
  for (const DTypeErrors& d : r.width2_errors) r.certified = r.certified && d.within;
}

}  // namespace isonorm::equivalence
