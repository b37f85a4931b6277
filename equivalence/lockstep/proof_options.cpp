#include "equivalence/lockstep/proof_options.h"

#include <algorithm>

#include "core/error.h"
#include "training/fields.h"
#include "training/from_outside.h"

namespace isonorm::equivalence {
namespace {

training::OptionList option_list(const ProofOptions& o) {
  training::OptionList list = option_list(o.training);
  std::erase_if(list, [](const auto& option) { return training::is_of_streams(option.first); });  // the forms say them
  std::string forms;
  for (const std::string& form : o.forms) forms += (forms.empty() ? "" : ",") + form;
  list.insert(list.begin() + 1, {{"forms", forms}, {"controls", text(o.controls)}});
  if (o.against) list.emplace_back("against", text(*o.against));
  return list;
}

}  // namespace

training::Manifest manifest_of(const ProofOptions& options) {
  training::Manifest m = manifest_of(options.training);
  m.options = option_list(options);
  training::TrainingOptions given = options.training, defaults = ProofOptions().training;
  defaults.model = training::ModelOptions(given.model.row());
  given.model.stream() = defaults.model.stream();
  m.command = text("isonorm prove --model ", training::quoted(name_and_origin(given.model.row())),
                   training::said(options_of(given), options_of(defaults)));
  for (const auto& [name, value] : m.options)
    if ((name == "forms" && options.forms != ProofOptions().forms) ||
        (name == "controls" && options.controls != ProofOptions().controls) || name == "against")
      m.command += text(" --", name, " ", value);
  return m;
}

}  // namespace isonorm::equivalence
