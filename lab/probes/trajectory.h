// One line of the certificate: an architecture trained in one dtype as Pre-LN, with its controls and the three forms.
#pragma once

#include <span>

#include "equivalence/lockstep/lockstep.h"
#include "lab/probes/architecture.h"

namespace isonorm::equivalence {

// A change to the options of a training, in addition to its architecture and optimizer.
struct Regime {
  const char* name;          // "dropout"
  const char* architecture;  // the name of the architecture that is trained
  void (*change)(training::TrainingOptions& options);
};

// Dropout, stochastic depth, layer scale, decay of matrices alone, accumulation, an average, a run that is resumed.
std::span<const Regime> regimes();

struct Trajectory {
  Architecture architecture;
  DType dtype;
  int steps = 0;
  const char* regime = "";               // name of the Regime, if there is one
  std::vector<RunResult> controls = {};  // Pre-LN moved by one ulp
  std::vector<RunResult> runs = {};      // rms_norm, crms_norm, crms_isometric, judged
  Magnitudes reach = {};                 // of the negative controls of this architecture
  size_t worst = 0;                      // index of the run that used most of its bound
  double share = 0;                      // the share of the bound that it used: at most 1 if it is equivalent
  double share_alone = 0;                // the largest share of any form if there were only one control, whichever
  Horizon horizon = {};                  // up to this step the runs could be told from negative controls
  double margin = 0;                     // least ratio of a limit to the bound at the last step: below 1 the horizon is
                                         // before the end
  Verdict verdict =
      Verdict::undecided;  // different: a run left the bound; equivalent: all stayed within it, and the horizon
                           // carries a verdict
};

// "gpt2", "gpt2, dropout 0.2".
inline std::string name_of(const Trajectory& t) {
  return *t.regime ? text(t.architecture.name, ", ", t.regime) : name_of(t.architecture);
}

// Trains `steps` steps on generated examples at a constant rate, and kNegativeSteps steps of negative controls, which
// determine the horizon. If `go_on` stopped it, it is undecided.
Trajectory train_architecture(const Architecture& a, DType dtype, int steps, int controls, uint64_t seed,
                              const Continue& go_on = {}, const Regime* regime = nullptr);

// Draws the verdicts from the deviations of `runs` and `controls`, and fills the other fields.
void judge(Trajectory& t);

}  // namespace isonorm::equivalence
