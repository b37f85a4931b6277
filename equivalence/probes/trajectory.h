// One line of the certificate: an architecture trained in one dtype, Pre-LN beside its controls and the three forms.
#pragma once

#include <span>

#include "equivalence/lockstep/lockstep.h"
#include "equivalence/probes/architecture.h"

namespace isonorm::equivalence {

// What a training has beside its architecture and optimizer.
struct Regime {
  const char* name;          // "dropout"
  const char* architecture;  // that it is trained on, by name
  void (*change)(training::TrainingOptions& options);
};

// Dropout, stochastic depth, layer scale, decay of matrices alone, accumulation, an average, a run that is resumed.
std::span<const Regime> regimes();

struct Trajectory {
  Architecture architecture;
  DType dtype;
  int steps = 0;
  const char* regime = "";               // what the training has beside these (Regime)
  std::vector<RunResult> controls = {};  // Pre-LN moved by one ulp
  std::vector<RunResult> runs = {};      // rms_norm, crms_norm, crms_isometric, judged
  Magnitudes reach = {};                 // of the wrong trainings of this architecture
  size_t worst = 0;                      // of `runs`: the one that used most of its bound
  double share = 0;                      // of the bound that it used: at most 1 where it is the same
  double share_alone = 0;  // the largest that any form would use if there were but one control, any of them
  Horizon horizon = {};    // up to which step the runs could be told from wrong trainings
  double power = 0;        // the least of its limits, divided by the bound at the last step: below 1 the horizon lies
                           // before the end
  Verdict verdict = Verdict::undecided;  // different: a run left the bound; same: all stayed within, and the horizon
                                         // carries a verdict
};

// "gpt2", "gpt2, dropout 0.2".
inline std::string name_of(const Trajectory& t) {
  return *t.regime ? text(t.architecture.name, ", ", t.regime) : name_of(t.architecture);
}

// Trains `steps` steps on made examples at a constant rate. Beside them kNegativeSteps steps of wrong
// trainings, which the horizon follows from. Not finished where `go_on` stopped it: undecided.
Trajectory train_architecture(const Architecture& a, DType dtype, int steps, int controls, uint64_t seed,
                              const Continue& go_on = {}, const Regime* regime = nullptr);

// Draws the verdicts from the deviations of `runs` and `controls`; fills what follows them.
void judge(Trajectory& t);

}  // namespace isonorm::equivalence
