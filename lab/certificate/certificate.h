// The certificate: many small architectures trained in every form, in f64 and f32; negative controls that have to come
// out different; and gradients at random points in f64, f32 and bf16, where trainings detect too little.
#pragma once

#include "lab/certificate/negative_control.h"
#include "lab/probes/point_errors.h"
#include "reports/result.h"
#include "training/records/manifest.h"

namespace isonorm::equivalence {

// The dtypes of the trainings, and of the comparisons at random points.
inline constexpr DType kTrained[] = {DType::f64, DType::f32}, kLookedAt[] = {DType::f64, DType::f32, DType::bf16};

struct CertificateOptions {
  std::vector<Architecture> architectures{isonorm::equivalence::architectures().begin(),
                                          isonorm::equivalence::architectures().end()};
  std::vector<NegativeControlRow> negative_controls{isonorm::equivalence::negative_controls().begin(),
                                                    isonorm::equivalence::negative_controls().end()};
  std::vector<Regime> regimes{isonorm::equivalence::regimes().begin(), isonorm::equivalence::regimes().end()};
  std::vector<Architecture> resolved = resolved_architectures();  // for smallest_detectable()
  int steps = 200;   // of a training in f64; in f32 a quarter of these, at least 1, because rounding grows
  int controls = 4;  // runs of Pre-LN moved by one ulp, for every training
  int points = 20;   // per architecture and dtype
  uint64_t seed = 1;
  int threads = 0;       // architectures at once, each in one thread; 0: all that the machine has
  Device device = kCpu;  // of all trainings and points, instead of the architectures' devices

  int steps_in(DType dtype) const { return dtype == DType::f64 ? steps : std::max(1, steps / 4); }
  // The regimes whose architecture is in `architectures`.
  std::vector<Regime> trained_regimes() const;
  // True if gradients of this architecture are compared at random points. This needs a rounding model, which exists for
  // models and connections of this library (rounding_model.h). Other architectures are only trained.
  bool looks_at(const Architecture& a) const;
  std::vector<Architecture> looked_at() const;
};

// The errors of a dtype over all architectures and points, in units of eps: geometric means of the largest error of
// any tensor. Only for the report: verdicts are drawn for each architecture and form alone.
struct DTypeErrors {
  DType dtype;
  double forms[kPointFormCount] = {}, plain = 0;
  double predicted[kPointFormCount] = {};             // the predicted rounding error (rounding_model.h)
  double rounded = 0, unrounded = 0;                  // bf16: forms with maps in bf16, and the same with maps in f32
  double kept[kPointFormCount] = {}, kept_plain = 0;  // f32: with activations kept in bf16; NaN for other dtypes
  int redrawn = 0;                                    // points that were drawn again
  Extreme median = {}, largest = {}, scale = {};      // over architectures and forms: "gpt1, crms_norm, head.weight"
  double least_seen = 0, always_seen = 0;  // a gradient times 1 + x is refused from these x on: the tensor that shows
                                           // it most; every tensor in every form
  bool as_expected = false;
};

struct CertificateResult {
  CertificateOptions options;
  training::Manifest manifest;
  std::vector<Trajectory> trajectories;          // f64, then f32, in the order of the architectures
  std::vector<Trajectory> regimes;               // f64, then f32, in the order of trained_regimes()
  std::vector<NegativeControlResult> negatives;  // f64, then f32
  std::vector<SmallestDetectable> detectable;    // f64, then f32
  std::vector<PointErrors> gradients;            // f64, f32, bf16
  std::vector<PointErrors> width2;               // logits of the degenerate width: f64, f32, bf16

  std::vector<ArchitectureVerdict> gradient_verdicts, width2_verdicts;  // of `gradients`, `width2`
  std::vector<DTypeErrors> gradient_errors, width2_errors;              // per dtype
  // equivalent: certified, everything was as expected; different: something was not; undecided: nothing is refuted, but
  // a mistake might not have been detected somewhere.
  Verdict verdict = Verdict::undecided;
  std::string reason;        // the first thing that is not as expected; empty if all is
  bool interrupted = false;  // nothing is concluded
  double seconds = 0;

  bool equivalent() const { return verdict == Verdict::equivalent; }
  // The trajectories of the architectures, then those of the regimes.
  std::vector<const Trajectory*> all_trajectories() const;
};

struct CertificateProgress {
  std::string what;  // the part that was worked on last: "gpt3 in f64"
  int step, steps;   // of the whole work
  double seconds;
};

// Trains and measures. The work of each thread does not depend on the others, so the results do not either. `progress`
// is called after every step, by one thread at a time, and returns false to stop. Meanwhile kernels and BLAS use one
// thread each. Throws if the options make no certificate.
CertificateResult certify(const CertificateOptions& options,
                          const std::function<bool(const CertificateProgress&)>& progress = {});

// Fills the verdicts and figures that follow from the parts. A part that is missing or present twice refutes the
// certificate.
void conclude(CertificateResult& result);

// --- the report ---

// "Equivalent: ..." with the figures and the detectable change, or "Different: ..." or "Undecided: ..." with the
// first thing that is not as expected. Then the claims, and a line per architecture, negative control, fault and dtype.
reports::Document document_of(const CertificateResult& r);
// The certificate as JSON.
const reports::Description& certificate_description();

// The claims with the measured figures and the figures that would have refuted them; and the charts, a dot per
// training.
reports::TextTable claim_table(const CertificateResult& r);
std::vector<reports::Figure> certificate_figures(const CertificateResult& r);
// "every horizon is the end of its run" or "the horizon lies before the end of gpt1 in f32 (31 of 50)".
std::string horizons_text(const CertificateResult& r);
// The short name of a certified form: "rms", "crms", "isometric". Also the class of its colour.
std::string short_name(const std::string& form);
// "6.8", "1.7e+06"; nothing for NaN.
std::string eps_text(double errors);

}  // namespace isonorm::equivalence
