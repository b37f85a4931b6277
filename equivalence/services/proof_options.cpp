#include "equivalence/services/proof_options.h"

#include <algorithm>

#include "core/system/failures.h"
#include "streams/stream.h"
#include "training/fields.h"
#include "training/run/given.h"

namespace isonorm::services {
namespace {

void check_forms(const std::vector<std::string>& forms) {
  if (forms.empty()) throw UsageError("--forms: the list is empty");
  const auto raw = [](const std::string& form) {
    const streams::FormRow* row = streams::find_row(form);
    return row && row->raw();
  };
  if (std::ranges::any_of(forms, raw))
    throw UsageError("--forms: layer_norm is the reference, which is not held against itself");
  training::check_names("--forms", forms, streams::listed(streams::centred_forms()));
}

}  // namespace

bool is_of_proofs(std::string_view name) {
  return !training::is_of_streams(name) && name != "precision" && name != "stream_precision";
}

void check_proof(const equivalence::ProofOptions& o) {
  training::check_number("--controls", o.controls, kControls);
  training::check_data(o.training);
  training::check_warmup(o.training);
  if (const int at = o.training.resume_at; at >= o.training.step_count())
    throw UsageError(text("--resume-at: ", at, " is not a step from 1 to below ", o.training.step_count()));
  check_forms(o.forms);
  if (!o.against) return;
  if (*o.against == o.training.device)
    throw UsageError(text("--against: ", *o.against, " is the device that trains the reference"));
  training::check_device(*o.against, "--against");
}

}  // namespace isonorm::services
