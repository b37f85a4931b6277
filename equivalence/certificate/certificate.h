// The certificate: many small architectures trained in every form, in f64 and f32, negative controls that have to come
// out different, and gradients at random points in f64, f32 and bf16, where trainings have no power left.
#pragma once

#include "equivalence/certificate/negative_control.h"
#include "equivalence/certificate/point_errors.h"

namespace isonorm::equivalence {

struct CertificateOptions {
  std::vector<Architecture> architectures{isonorm::equivalence::architectures().begin(),
                                          isonorm::equivalence::architectures().end()};
  std::vector<NegativeControl> negative_controls{isonorm::equivalence::negative_controls().begin(),
                                                 isonorm::equivalence::negative_controls().end()};
  int steps = 200;   // of a training in f64; in f32 a quarter, at least 1 (rounding grows)
  int controls = 4;  // runs of Pre-LN moved by one ulp, beside every training
  int points = 20;   // per architecture and dtype
  uint64_t seed = 1;
  int threads = 0;  // architectures at once, each in one thread; 0: all that the machine has

  int steps_in(DType dtype) const { return dtype == DType::f64 ? steps : std::max(1, steps / 4); }
};

// The errors of one dtype over all architectures and points: geometric means, in units of eps.
struct DTypeErrors {
  DType dtype;
  double own = 0, forms[3] = {}, plain = 0;
  double rounded = 0, unrounded = 0;  // bf16: forms with maps in bf16, and the same with maps in f32
  double limit() const { return 2 * own; }
  bool within = false;         // forms stay within the limit
  bool flat = false;           // and, in eps, within twice what they are in f64
  bool plain_differs = false;  // plain RMSNorm does not (true where it was not measured)
};

struct CertificateResult {
  CertificateOptions options;
  Manifest manifest;
  std::vector<Trajectory> trajectories;  // f64, then f32, in the order of the architectures
  std::vector<NegativeResult> negatives;
  std::vector<PointErrors> gradients;  // f64, f32, bf16
  std::vector<PointErrors> width2;     // logits of the degenerate width: f64, f32, bf16

  std::vector<DTypeErrors> gradient_errors;  // of `gradients`, per dtype
  std::vector<DTypeErrors> width2_errors;
  bool certified = false;    // everything came out as expected
  bool interrupted = false;  // nothing is concluded
  double seconds = 0;
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

// Fills gradient_errors, width2_errors and certified from the parts.
void conclude(CertificateResult& result);

}  // namespace isonorm::equivalence
