#include "training/records/manifest.h"

#include <cmath>
#include <fstream>

#include "core/kernels/isa_choice.h"
#include "core/kernels/matmul.h"
#include "core/printed.h"
#include "core/system/blas.h"
#include "core/system/foreign_text.h"
#include "core/system/parallel.h"
#include "io/data/image_sets.h"
#include "training/fields.h"
#include "training/from_outside.h"

namespace isonorm::training {
namespace {

std::string compiler_name() {
#if defined(__clang__)
  return text("Clang ", __clang_major__, ".", __clang_minor__, ".", __clang_patchlevel__);
#else
  return text("GNU ", __GNUC__, ".", __GNUC_MINOR__, ".", __GNUC_PATCHLEVEL__);
#endif
}

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) {
      const size_t value = line.find_first_not_of(" \t", line.find(':') + 1);
      if (value != std::string::npos) return line.substr(value);
    }
  return "unknown";
}

std::string cpu_name() {
  const std::string id = name_of(this_processor());
  return cpu_model() + (id.empty() ? "" : " (" + id + ")");
}

}  // namespace

reports::Value option_value(const std::string& name, const std::string& value) {
  if (names_a_file(name)) return value;
  if (value == "true" || value == "false") return value == "true";
  if (int64_t number = 0; read_number(value, number)) return number;
  const bool digits = value.find_first_not_of("0123456789") == value.npos;  // a seed above 2^63
  if (double number = 0; !digits && read_number(value, number) && std::isfinite(number)) return number;
  return value;
}

OptionList option_list(const TrainingOptions& given) {
  TrainingOptions o = given;
  o.model = o.model.complete();
  o.steps = o.step_count();
  o.warmup = o.warmup_steps();
  o.weight_decay = o.decay();
  o.tuning = o.tuning.over(o.optimizer->tuning);
  if (o.threads == 0) o.threads = num_threads();
  OptionList list = {{"model", name_and_origin(o.model.row())}};
  for (const Option& option : options_of(o))
    if (!option.help.empty()) list.emplace_back(option.name, option.text());
  return list;
}

Manifest manifest_of(const TrainingOptions& options) {
  Manifest m;
  m.version = ISONORM_VERSION;
  m.compiler = compiler_name();
  m.flags = ISONORM_FLAGS;
  m.instructions = name_of(isa());
  m.instructions_reason = isa_choice().reason;
  m.products = kernels::openblas_multiplies() ? "OpenBLAS" : "isonorm";
  const BlasInfo blas = blas_info();
  m.blas_core = blas.core;
  m.blas_flavour = blas.flavour;
  m.blas_version = blas.version;
  m.threads = options.threads > 0 ? options.threads : num_threads();
  m.cpu = cpu_name();
  m.seed = options.seed;
  m.dtype = name_of(options.dtype);
  m.options = option_list(options);
  m.classes = options.spec.classes;
  return m;
}

OptionList given(const std::vector<Option>& options, const std::vector<Option>& defaults) {
  OptionList list;
  for (size_t i = 0; i < options.size(); ++i) {
    const Option& option = options[i];
    const std::string value = option.text();
    if (option.help.empty() || value == defaults[i].text()) continue;
    if (option.flag())
      list.emplace_back(word_of(value == "true" ? option.name : "no_" + option.name), "");
    else
      list.emplace_back(word_of(option.name), value);
  }
  return list;
}

std::string said(const OptionList& given) {
  std::string words;
  for (const auto& [word, value] : given) words += text(" ", word, value.empty() ? "" : " " + shell_word(value));
  return words;
}

reports::Environment environment_of(const Manifest& m, double seconds) {
  reports::Environment e{.command = m.command, .seconds = seconds};
  // One by one: GCC 12 destroys a list of these values wrongly if an allocation fails within it.
  const auto add = [&](const char* name, reports::Value value) { e.facts.push_back({name, std::move(value)}); };
  add("isonorm", m.version);
  add("compiler", text(m.compiler, " ", m.flags));
  add("cpu", m.cpu);
  add("kernels", m.instructions);
  add("kernels_reason", m.instructions_reason);
  add("products", m.products);
  add("blas", text(m.blas_version, ", core ", m.blas_core, ", ", m.blas_flavour, " flavour"));
  add("threads", int64_t{m.threads});
  add("dtype", m.dtype);
  add("seed", option_value("seed", text(m.seed)));
  if (!m.classes.empty()) add("classes", data::class_list(m.classes));
  for (const auto& [name, value] :
       {std::pair{"data_sha256", &m.data_sha256}, {"init_sha256", &m.init_sha256}, {"earlier", &m.earlier}})
    if (!value->empty()) add(name, *value);
  for (const auto& [name, value] : m.options) e.options.push_back({name, option_value(name, value)});
  return e;
}

}  // namespace isonorm::training
