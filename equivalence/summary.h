// What a proof or a training says, as text: the rows of the table, the closing sentence and the command that repeats
// it. Terminal, report and JSON share it.
#pragma once

#include <string>
#include <vector>

#include "equivalence/result.h"
#include "equivalence/text_table.h"
#include "equivalence/training_result.h"

namespace isonorm::equivalence {

// One row of the table. An empty cell: nothing to say (a reference has no deviation, a negative control no test pass).
struct SummaryRow {
  enum class Kind { reference, control, form, negative };
  Kind kind;
  std::string name;
  std::string parameters;
  std::string loss, gradient, weight;                          // largest deviations
  std::string control_loss, control_gradient, control_weight;  // D_c at the end of the run, beside them
  std::string accuracy, differing;                             // "81.23 %", "0"
  std::string expected, observed;
  bool as_expected = true;
};

// Reference, controls, forms, negative controls, in this order.
std::vector<SummaryRow> summary_rows(const ProofResult& proof);

// They as a table, a gap between the kinds.
TextTable summary_table(const ProofResult& proof);

// "Equivalent", "Not equivalent" or "Undecided".
const char* verdict_name(const ProofResult& proof);

// "Equivalent: ...", "Not equivalent: ..." or "Undecided: ...", with the figures, horizon and resolution, or the first
// run that was not as expected.
std::string summary_sentence(const ProofResult& proof);

// "test loss 0.3521, test accuracy 87.12 % (8712 of 10000 images)"; of a language model "held-out loss 0.5000,
// perplexity 1.649, test accuracy 87.10 % (871 of 1000 characters)".
std::string evaluation_text(const Evaluation& e, ModelKind model);

// "rms_norm, 51466 parameters, 200 steps: test loss 0.3521, test accuracy 87.12 % (8712 of 10000 images)".
std::string summary_sentence(const TrainingResult& training);

// "rms_norm", "rms_norm projected_once", "rms_norm, gains frozen", "layer_norm + 1 ulp (seed 3)".
std::string run_name(const RunResult& run);

// "isonorm prove --model vit ...", every option written out, quoted for a POSIX shell.
std::string repeat_command(const Manifest& manifest);

// "3.1e-15"; "0" for zero, "NaN".
std::string scientific(double value);

}  // namespace isonorm::equivalence
