// What a proof says, as text: the rows of the table and the closing sentence. Terminal, report and JSON share it.
#pragma once

#include <string>
#include <vector>

#include "equivalence/lockstep/result.h"
#include "reports/text_table.h"

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
reports::TextTable summary_table(const ProofResult& proof);

// "Equivalent", "Not equivalent" or "Undecided".
const char* verdict_name(const ProofResult& proof);

// "Equivalent: ...", "Not equivalent: ..." or "Undecided: ...", with the figures, horizon and resolution, or the first
// run that was not as expected.
std::string summary_sentence(const ProofResult& proof);

// "rms_norm", "rms_norm projected_once", "rms_norm, gains frozen", "layer_norm + 1 ulp (seed 3)".
std::string run_name(const RunResult& run);

}  // namespace isonorm::equivalence
