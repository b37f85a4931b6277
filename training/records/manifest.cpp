#include "training/records/manifest.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <fstream>

#include "core/kernels/kernel.h"
#include "core/printed.h"
#include "core/system/blas_info.h"
#include "core/system/parallel.h"
#include "training/from_outside.h"
#include "training/models/own_option.h"

namespace isonorm::training {
namespace {

std::string compiler_name() {
#if defined(__clang__)
  return text("Clang ", __clang_major__, ".", __clang_minor__, ".", __clang_patchlevel__);
#else
  return text("GNU ", __GNUC__, ".", __GNUC_MINOR__, ".", __GNUC_PATCHLEVEL__);
#endif
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) {
      const size_t value = line.find_first_not_of(" \t", line.find(':') + 1);
      if (value != std::string::npos) return line.substr(value);
    }
  return "unknown";
}

// A word as a POSIX shell reads it.
std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) || std::string_view("-_./,+=:@").find(c) != std::string_view::npos;
  });
  if (plain) return word;
  std::string result = "'";
  for (char c : word) {
    if (c == '\'')
      result += "'\\''";
    else
      result += c;
  }
  result += '\'';
  return result;
}

// `value` as a T, where all of it is one.
template <class T> std::optional<T> whole(const std::string& value) {
  T number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size()) return {};
  return number;
}

// A number or a boolean where the option's text is one that a program reads without loss.
reports::Value option_value(const std::string& name, const std::string& value) {
  if (name == "data") return value;
  if (value == "true" || value == "false") return value == "true";
  if (const auto number = whole<int64_t>(value)) return *number;
  const bool digits = value.find_first_not_of("0123456789") == value.npos;  // a seed above 2^63
  if (const auto number = whole<double>(value); number && !digits && std::isfinite(*number)) return *number;
  return value;
}

}  // namespace

OptionList option_list(const TrainingOptions& o) {
  OptionList list = {{"model", name_and_origin(*o.model)},
                     {"data", o.data},
                     {"optimizer", name_and_origin(*o.optimizer)},
                     {"lr", shortest(o.lr)},
                     {"warmup", text(o.warmup)},
                     {"weight-decay", shortest(o.decay())},
                     {"clip", shortest(o.clip)},
                     {"steps", text(o.step_count())},
                     {"batch", text(o.batch)},
                     {"width", text(o.width)},
                     {"depth", text(o.depth)},
                     {"heads", text(o.heads)}};
  const auto add_own = [&](bool flags) {
    for (const OwnOption& option : kOwnOptions)
      if ((option.flag != nullptr) == flags && has(*o.model, option.name))
        list.emplace_back(option.word(), option.value_in(o));
  };
  add_own(false);
  list.insert(list.end(),
              {{"head-width", text(o.head_width > 0 ? o.head_width : o.width / std::max<int64_t>(1, o.heads))},
               {"mlp", text(o.mlp > 0 ? o.mlp : 4 * o.width)},
               {"activation", name_of(o.activation)},
               {"positions", name_of(o.positions)}});
  add_own(true);
  list.insert(list.end(), {{"no-bias", text(!o.bias)},
                           {"affine", text(o.affine && o.norm_bias)},
                           {"dtype", name_of(o.dtype)},
                           {"eps", shortest(o.eps)},
                           {"seed", text(o.seed)},
                           {"threads", text(o.threads > 0 ? o.threads : num_threads())}});
  const auto where = [&](bool there, const char* name, const std::string& value) {
    if (there) list.emplace_back(name, value);
  };
  where(o.device != kCpu, "device", text(o.device));
  where(o.branch.dropout > 0, "dropout", shortest(o.branch.dropout));
  where(o.branch.stochastic_depth > 0, "stochastic-depth", shortest(o.branch.stochastic_depth));
  where(o.branch.layer_scale > 0, "layer-scale", shortest(o.branch.layer_scale));
  where(o.affine && !o.norm_bias, "gain", "true");
  where(o.scaled_gains, "scaled-gains", "true");
  where(o.kv_heads > 0 && o.kv_heads != o.heads, "kv-heads", text(o.kv_heads));
  where(o.initialisation != nn::Initialisation::by_layer, "initialisation", name_of(o.initialisation));
  where(o.schedule != optim::Decay::cosine, "schedule", name_of(o.schedule));
  where(o.model->input == Input::pairs && o.data.empty(), "task", name_of(o.task));
  where(o.label_smoothing > 0, "label-smoothing", shortest(o.label_smoothing));
  where(o.clip_gates > 0, "clip-gates", shortest(o.clip_gates));
  where(o.connection != nn::kPreLn, "connection", name_and_origin(o.connection));
  where(o.precision.products != nn::Precision::full, "precision", name_of(o.precision.products));
  where(o.precision.stream != nn::Precision::full, "stream-precision", name_of(o.precision.stream));
  where(o.decay_matrices_only, "decay-matrices-only", "true");
  where(o.accumulate > 1, "accumulate", text(o.accumulate));
  where(o.ema > 0, "ema", shortest(o.ema));
  where(o.resume_at > 0, "resume-at", text(o.resume_at));
  return list;
}

Manifest manifest_of(const TrainingOptions& options) {
  Manifest m;
  m.version = ISONORM_VERSION;
  m.compiler = compiler_name();
  m.flags = ISONORM_FLAGS;
  m.instructions = name_of(isa());
  const BlasInfo blas = blas_info();
  m.blas_core = blas.core;
  m.blas_flavour = blas.flavour;
  m.blas_version = blas.version;
  m.threads = options.threads > 0 ? options.threads : num_threads();
  m.cpu = cpu_name();
  m.seed = options.seed;
  m.dtype = name_of(options.dtype);
  m.options = option_list(options);
  return m;
}

Manifest manifest_of(const TrainingOptions& options, const std::string& form, DType activations) {
  Manifest m = manifest_of(options);
  m.options.insert(m.options.begin(), {"form", form});
  m.options.emplace_back("activations", name_of(activations));
  return m;
}

std::string repeat_command(const Manifest& manifest) {
  std::string command = "isonorm " + manifest.verb;
  for (const auto& [name, value] : manifest.options) {
    if (value.empty() || value == "false") continue;  // "false" and "true": a flag
    command += text(" --", name);
    if (value != "true") command += text(" ", quoted(value));
  }
  return command;
}

reports::Environment environment_of(const Manifest& m, double seconds) {
  reports::Environment e{
      .facts = {{"isonorm", m.version},
                {"compiler", text(m.compiler, " ", m.flags)},
                {"CPU", m.cpu},
                {"kernels", m.instructions},
                {"BLAS", text(m.blas_version, ", core ", m.blas_core, ", ", m.blas_flavour, " flavour")},
                {"threads", int64_t{m.threads}},
                {"dtype", m.dtype},
                {"seed", option_value("seed", text(m.seed))}},
      .command = repeat_command(m),
      .seconds = seconds};
  for (const auto& [name, value] : {std::pair{"data, SHA-256", &m.data_sha256},
                                    {"first weights, SHA-256", &m.init_sha256},
                                    {"earlier", &m.earlier}})
    if (!value->empty()) e.facts.push_back({name, *value});
  for (const auto& [name, value] : m.options) e.options.push_back({name, option_value(name, value)});
  return e;
}

}  // namespace isonorm::training
