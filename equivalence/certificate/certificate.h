// The certificate: many small architectures trained in every form, in f64 and f32, negative controls that have to come
// out different, and gradients at random points in f64, f32 and bf16, where trainings have no power left.
#pragma once

#include "equivalence/certificate/negative_control.h"
#include "equivalence/certificate/resolution.h"
#include "equivalence/probes/point_verdict.h"

namespace isonorm::equivalence {

// In which dtypes architectures are trained, and looked at at random points.
inline constexpr DType kTrained[] = {DType::f64, DType::f32}, kLookedAt[] = {DType::f64, DType::f32, DType::bf16};

struct CertificateOptions {
  std::vector<Architecture> architectures{isonorm::equivalence::architectures().begin(),
                                          isonorm::equivalence::architectures().end()};
  std::vector<NegativeControl> negative_controls{isonorm::equivalence::negative_controls().begin(),
                                                 isonorm::equivalence::negative_controls().end()};
  std::vector<Regime> regimes{isonorm::equivalence::regimes().begin(), isonorm::equivalence::regimes().end()};
  std::vector<Architecture> resolved = resolved_architectures();  // where the smallest fault that shows is looked for
  int steps = 200;   // of a training in f64; in f32 a quarter, at least 1 (rounding grows)
  int controls = 4;  // runs of Pre-LN moved by one ulp, beside every training
  int points = 20;   // per architecture and dtype
  uint64_t seed = 1;
  int threads = 0;       // architectures at once, each in one thread; 0: all that the machine has
  Device device = kCpu;  // of all trainings and points, whatever the architectures say

  int steps_in(DType dtype) const { return dtype == DType::f64 ? steps : std::max(1, steps / 4); }
  // Those whose architecture is among these.
  std::vector<Regime> trained_regimes() const;
  // Those whose gradients are looked at: what rounding does is written out for models and connections of this library
  // (rounding_model.h). Others are trained.
  bool looks_at(const Architecture& a) const;
  std::vector<Architecture> looked_at() const;
};

// The errors of one dtype over all architectures and points, in units of eps: geometric means of the largest error of
// any tensor. For show: verdicts are drawn from each architecture and form alone.
struct DTypeErrors {
  DType dtype;
  double forms[kPointFormCount] = {}, plain = 0;
  double predicted[kPointFormCount] = {};             // what rounding does (rounding_model.h)
  double rounded = 0, unrounded = 0;                  // bf16: forms with maps in bf16, and the same with maps in f32
  double kept[kPointFormCount] = {}, kept_plain = 0;  // f32: activations kept in bf16; NaN of others
  int redrawn = 0;                                    // points that were drawn anew
  Extreme median = {}, largest = {}, scale = {};      // of any architecture and form: "gpt1, crms_norm, head.weight"
  double least_seen = 0, always_seen = 0;  // a factor 1 + x of a gradient is refused from these x on: that of the
                                           // tensor where it shows most; every tensor's, in every form
  bool as_expected = false;
};

struct CertificateResult {
  CertificateOptions options;
  training::Manifest manifest;
  std::vector<Trajectory> trajectories;   // f64, then f32, in the order of the architectures
  std::vector<Trajectory> regimes;        // f64, then f32, in the order of trained_regimes()
  std::vector<NegativeResult> negatives;  // f64, then f32
  std::vector<Resolution> resolutions;    // f64, then f32
  std::vector<PointErrors> gradients;     // f64, f32, bf16
  std::vector<PointErrors> width2;        // logits of the degenerate width: f64, f32, bf16

  std::vector<ArchitectureVerdict> gradient_verdicts, width2_verdicts;  // of `gradients`, `width2`
  std::vector<DTypeErrors> gradient_errors, width2_errors;              // per dtype
  // same: certified, everything came out as expected; different: something did not; undecided: nothing is refuted, and
  // somewhere a wrong training would not have shown.
  Verdict verdict = Verdict::undecided;
  std::string reason;        // what is not as expected first; empty where all is
  bool interrupted = false;  // nothing is concluded
  double seconds = 0;

  bool certified() const { return verdict == Verdict::same; }
  // Those of the architectures, then those of the regimes.
  std::vector<const Trajectory*> all_trajectories() const;
};

struct CertificateProgress {
  std::string what;  // what was worked on last: "gpt3 in f64"
  int step, steps;   // of the whole work
  double seconds;
};

// Trains and measures; what each thread does does not depend on the others, so neither do the results. `progress` is
// called after every step, by one thread at a time, and returns false to stop. While it runs kernels and BLAS use one
// thread each. Throws on options that make no certificate.
CertificateResult certify(const CertificateOptions& options,
                          const std::function<bool(const CertificateProgress&)>& progress = {});

// Fills the verdicts and figures that follow from the parts. A part that is missing, or there twice, refutes the
// certificate.
void conclude(CertificateResult& result);

}  // namespace isonorm::equivalence
