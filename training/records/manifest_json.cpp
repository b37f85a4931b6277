#include "training/records/manifest_json.h"

namespace isonorm::training {
namespace {

// A number where the option's text is one, else the text.
json option_value(const std::string& name, const std::string& value) {
  const json read = parsed(value);
  return name != "data" && (read.is_number() || read.is_boolean()) ? read : json(value);
}

}  // namespace

json manifest_json(const Manifest& m) {
  json options = json::object();
  for (const auto& [name, value] : m.options) options[name] = option_value(name, value);
  json object = {{"version", m.version},
                 {"compiler", m.compiler},
                 {"flags", m.flags},
                 {"instructions", m.instructions},
                 {"blas", m.blas_version},
                 {"blas_core", m.blas_core},
                 {"blas_flavour", m.blas_flavour},
                 {"threads", m.threads},
                 {"cpu", m.cpu},
                 {"seed", m.seed},
                 {"dtype", m.dtype},
                 {"options", options},
                 {"data_sha256", m.data_sha256},
                 {"command", repeat_command(m)}};
  if (!m.init_sha256.empty()) object["init_sha256"] = m.init_sha256;
  if (!m.earlier.empty()) object["earlier"] = m.earlier;
  return object;
}

}  // namespace isonorm::training
