#include "equivalence/lockstep/proof_options.h"

#include <algorithm>

#include "core/error.h"

namespace isonorm::equivalence {
namespace {

training::OptionList option_list(const ProofOptions& o) {
  training::OptionList list = option_list(o.training);
  std::erase_if(list, [](const auto& option) {  // those of the forms are their own
    return option.first == "form" || option.first == "storage" || option.first == "centre_readers";
  });
  std::string forms;
  for (const std::string& form : o.forms) forms += (forms.empty() ? "" : ",") + form;
  list.insert(list.begin() + 1, {{"forms", forms}, {"controls", text(o.controls)}});
  if (o.against) list.emplace_back("against", text(*o.against));
  return list;
}

}  // namespace

training::Manifest manifest_of(const ProofOptions& options) {
  training::Manifest m = manifest_of(options.training);
  m.verb = "prove";
  m.options = option_list(options);
  ProofOptions defaults;
  defaults.training.model = training::ModelOptions(options.training.model.row());
  m.defaults = option_list(defaults);
  return m;
}

}  // namespace isonorm::equivalence
