#include "equivalence/lockstep/proof_options.h"

#include <algorithm>

#include "core/error.h"

namespace isonorm::equivalence {

training::OptionList option_list(const ProofOptions& o) {
  training::OptionList list = option_list(o.training);
  const auto put = [&](int places, const char* beside, const char* name, const std::string& value) {
    const auto at = std::find_if(list.begin(), list.end(), [&](const auto& option) { return option.first == beside; });
    list.insert(at + places, {name, value});
  };
  std::string forms;
  for (const std::string& form : o.forms) forms += (forms.empty() ? "" : ",") + form;
  put(1, "data", "forms", forms);
  if (o.against) list.emplace_back("against", text(*o.against));
  put(0, "dtype", "controls", text(o.controls));
  return list;
}

training::Manifest manifest_of(const ProofOptions& options) {
  training::Manifest m = manifest_of(options.training);
  m.verb = "prove";
  m.options = option_list(options);
  return m;
}

}  // namespace isonorm::equivalence
