#include "tools/options.h"

#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/system/parallel.h"
#include "gpu/device.h"
#include "nn/residual/all.h"
#include "streams/stream.h"
#include "tools/output.h"

namespace isonorm::tools {
namespace {

using training::TrainingOptions;

// Those of --optimizer.
std::vector<const training::OptimizerRow*> choices() {
  std::vector<const training::OptimizerRow*> rows;
  for (const training::OptimizerRow& row : training::optimizers())
    if (row.choice) rows.push_back(&row);
  return rows;
}

// "decoupled for adamw (default 0.01), sgdw, lion; else L2 (default 0)": those with a default of their own first.
std::string decay_help() {
  std::string first, rest;
  for (const training::OptimizerRow* row : choices())
    if (row->weight_decay > 0)
      first += text(first.empty() ? "" : ", ", row->name, " (default ", row->weight_decay, ")");
    else if (row->decoupled)
      rest += text(", ", row->name);
  return text("decoupled for ", first, rest, "; else L2 (default 0)");
}

// The parser takes "-1" for the largest number, and cuts one that is too large.
std::string whole_number(const std::string& word) {
  uint64_t value = 0;
  const auto [last, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool ok = error == std::errc() && last == word.data() + word.size();
  return ok ? std::string() : text("\"", word, "\" is not a whole number from 0 to 2^64 - 1");
}

void require(bool ok, const char* option, double value, const char* expected) {
  if (!ok) throw UsageError(text(option, ": ", value, " is not ", expected));
}

void require_positive(const char* option, int64_t value) {
  require(value >= 1, option, static_cast<double>(value), "a whole number from 1 on");
}

}  // namespace

std::function<std::string(const std::string&)> one_of(std::span<const streams::Form> forms) {
  return [forms](const std::string& name) {
    for (streams::Form f : forms)
      if (name == name_of(f)) return std::string();
    return text("\"", name, "\" is not one of ", streams::listed(forms));
  };
}

void add_seed(CLI::App& command, uint64_t& seed, const std::string& help) {
  command.add_option("--seed", seed, help)->capture_default_str()->check(whole_number);
}

void add_threads(CLI::App& command, int& threads) {
  command.add_option("--threads", threads, "threads (default: all)");
}

void add_device_option(CLI::App& command, const char* name, const std::string& help, std::function<void(Device)> take) {
  const auto read = [name, take = std::move(take)](const std::string& word) {
    const std::optional<Device> device = gpu::device_of(word);
    if (!device) throw CLI::ValidationError(name, text("\"", word, "\" is no device, expected cpu, cuda or cuda:N"));
    take(*device);
  };
  command.add_option_function<std::string>(name, read, help)->type_name("DEVICE");
}

void add_device(CLI::App& command, Device& device) {
  add_device_option(command, "--device", "cpu (default), cuda or cuda:N: where it is computed",
                    [&device](Device d) { device = d; });
}

void check_device(Device device, const char* option) {
  if (device == kCpu) return;
  const std::string why = gpu::why_none();
  check(why.empty(), option, " ", device, ": ", why);
  check(device.index < gpu::device_count(), option, " ", device, ": there are ", gpu::device_count(), " GPUs");
}

void check_threads(const CLI::App& command, int threads) {
  if (command.count("--threads") > 0 && (threads < 1 || threads > kMostThreads))
    throw UsageError(text("--threads: ", threads, " is not a whole number from 1 to ", kMostThreads));
}

void add_model(CLI::App& command, const training::ModelRow*& model) {
  add_choice(command, "--model", model, {std::begin(training::kModels), std::end(training::kModels)},
             "image classifier or language model");
}

void add_model_options(CLI::App& command, training::TrainingOptions& o) {
  command.add_option("--width", o.width, "width of the residual stream")->capture_default_str();
  command.add_option("--depth", o.depth, "Transformer blocks")->capture_default_str();
  command.add_option("--heads", o.heads, "attention heads; they divide the width")->capture_default_str();
  const auto add_own = [&](bool flags) {
    for (const training::OwnOption& own : training::kOwnOptions) {
      const std::string name = "--" + own.word(), help = text(training::models_with(own.name), ": ", own.help);
      if (own.flag && flags) command.add_flag(name, o.*own.flag, help);
      if (own.number && !flags) command.add_option(name, o.*own.number, help)->capture_default_str();
    }
  };
  add_own(false);
  command.add_option("--head-width", o.head_width, "width of a head (default: width / heads)");
  command.add_option("--kv-heads", o.kv_heads,
                     "heads of keys and values, each shared by as many heads of queries (default: heads)");
  command.add_option("--mlp", o.mlp, "width of the MLP (default: 4 width)");
  add_choice(command, "--activation", o.activation,
             {nn::Activation::gelu, nn::Activation::gelu_tanh, nn::Activation::relu, nn::Activation::silu,
              nn::Activation::swiglu},
             "of the MLP");
  add_choice(command, "--positions", o.positions,
             {nn::Positions::learned, nn::Positions::rotary, nn::Positions::rotary_halves, nn::Positions::none},
             "how tokens learn where they stand");
  add_own(true);
  command.add_flag_callback(
      "--no-bias", [&o] { o.bias = false; }, "linear maps without biases");
  CLI::Option* affine = command.add_flag_callback(
      "--affine", [&o] { o.affine = o.norm_bias = true; }, "norms with learned gain and bias");
  command
      .add_flag_callback(
          "--gain", [&o] { o.affine = true, o.norm_bias = false; }, "norms with a learned gain and no bias")
      ->excludes(affine);
  command.add_flag("--scaled-gains", o.scaled_gains,
                   "with --gain or --affine: gains of the norms of block l begin at 1/sqrt(l)");
  add_choice(command, "--initialisation", o.initialisation,
             {nn::Initialisation::by_layer, nn::Initialisation::normal, nn::Initialisation::scaled},
             "of matrices and tables: each layer's own; N(0, 0.02^2), tables N(0, 2/5); the same with less where "
             "branches end");
  command.add_option("--eps", o.eps, "added inside the root of every norm")->capture_default_str();
}

void add_shown_only(CLI::App& command, const char* option, const char* only) {
  const auto read = [=](const std::string& word) {
    if (word != only)
      throw CLI::ValidationError(option, text("\"", word, "\" is not ", only, ", of which alone this is shown"));
  };
  command.add_option_function<std::string>(option, read)->group("");  // no choice that --help would offer
}

void add_connection(CLI::App& command, nn::Arrangement& connection) {
  add_choice(command, "--connection", connection, {std::begin(nn::kArrangements), std::end(nn::kArrangements)},
             "how norms and sub-layers hang on the residual stream");
}

void add_precision(CLI::App& command, nn::MixedPrecision& precision) {
  const auto add = [&](const char* option, nn::Precision& target, const char* help) {
    add_choice(command, option, target, {nn::Precision::full, nn::Precision::bf16}, help);
    command.get_option(option)->check([](const std::string& word) {
      return word != "f16" && word != "fp16"
                 ? std::string()
                 : text("\"", word, "\" loses gradients below 6e-8 unless the loss is scaled, which is not done here; ",
                        "bf16 has the exponents of f32 and needs no scaling");
    });
  };
  add("--precision", precision.products,
      "of products and of what branches keep: full (that of --dtype) or bf16, weights and optimizer staying f32");
  add("--stream-precision", precision.stream, "of the residual stream; bf16 needs --precision bf16");
}

void check_precision(const training::TrainingOptions& o) {
  const nn::MixedPrecision& p = o.precision;
  if (p.products != nn::Precision::full && o.dtype != DType::f32)
    throw UsageError(text("--precision ", name_of(p.products), " does not go with --dtype ", o.dtype));
  if (p.stream != nn::Precision::full && p.products != p.stream)
    throw UsageError(text("--stream-precision ", name_of(p.stream), " needs --precision ", name_of(p.stream)));
}

void add_regularisation(CLI::App& command, training::TrainingOptions& o) {
  command.add_option("--dropout", o.branch.dropout, "share of a branch's entries that training sets to 0");
  command.add_option("--stochastic-depth", o.branch.stochastic_depth,
                     "probability that training leaves a branch out for an example");
  command.add_option("--layer-scale", o.branch.layer_scale,
                     "initial value of a learned factor for each entry of a branch");
  command.add_flag("--decay-matrices-only", o.decay_matrices_only,
                   "no weight decay on norms, biases and other vectors");
  command.add_option("--accumulate", o.accumulate, "parts in which a batch is differentiated");
  command.add_option("--ema", o.ema, "decay of an exponential moving average of the weights");
}

void check_regularisation(const training::TrainingOptions& o) {
  for (const auto& [option, value] :
       {std::pair{"--dropout", o.branch.dropout}, {"--stochastic-depth", o.branch.stochastic_depth}, {"--ema", o.ema}})
    require(value >= 0 && value < 1, option, value, "a number from 0 to below 1");
  const double scale = o.branch.layer_scale;
  require(scale >= 0 && std::isfinite(scale), "--layer-scale", scale, "a number from 0 on");
  if (o.accumulate < 1 || o.batch % o.accumulate != 0)
    throw UsageError(text("--accumulate: ", o.accumulate, " does not divide the batch of ", o.batch));
}

void add_shared_options(CLI::App& command, training::TrainingOptions& o) {
  add_model(command, o.model);
  command.add_option(
      "--data", o.data,
      text(training::models_with(training::Input::images),
           ": folder of the four idx.gz files of MNIST or Fashion-MNIST (default: where the package "
           "dataset-fashion-mnist "
           "puts them), or of CIFAR-10's six .bin files; ",
           training::models_with(training::Input::characters),
           ": a text file, its characters being the tokens, its last tenth being what the test pass reads; ",
           training::models_with(training::Input::pairs),
           ": a folder of source.txt and target.txt, whose lines belong together (default: pairs made for --task)"));
  add_choice(command, "--task", o.task, {data::Task::copy, data::Task::sort, data::Task::translate},
             text(training::models_with(training::Input::pairs), " without --data: what made pairs are of"));
  add_choice(command, "--optimizer", o.optimizer, choices(), "optimizer");
  command.add_option("--lr", o.lr, "peak learning rate")->capture_default_str();
  command.add_option("--warmup", o.warmup, "steps of linear warm-up; --schedule follows")->capture_default_str();
  add_choice(command, "--schedule", o.schedule,
             {optim::Decay::cosine, optim::Decay::linear, optim::Decay::inverse_sqrt, optim::Decay::constant},
             "of the rate behind the warm-up");
  command.add_option("--weight-decay", o.weight_decay, decay_help());
  command.add_option("--clip", o.clip, "largest global norm of the gradient; 0: no clipping")->capture_default_str();
  command.add_option("--steps", o.steps, text("training steps (default ", o.step_count(), ")"));
  command.add_option("--batch", o.batch, "examples in a step")->capture_default_str();
  add_model_options(command, o);
  add_choice(command, "--dtype", o.dtype, {DType::f32, DType::f64}, "of parameters and activations");
  add_seed(command, o.seed, "of initialisation and batches");
  add_threads(command, o.threads);
  add_device(command, o.device);
}

void add_output_options(CLI::App& command, OutputOptions& o, const std::string& what, const std::string& rest) {
  command.add_option("--report", o.report, text("write ", what, " as an HTML page"));
  command.add_option("--json", o.json, text("write ", what, " as a JSON object"));
  command.add_option("--log", o.log, "write a JSON line per step");
  command.add_flag("-q,--quiet", o.quiet, text("print the ", rest, " only"));
}

void check_output_options(const OutputOptions& o, std::vector<NamedFile> inputs, std::vector<NamedFile> more) {
  more.push_back({"--report", o.report}), more.push_back({"--json", o.json});
  more.push_back({"--log", o.log, Written::in_place});
  check_outputs(more, inputs);
}

void check_own_options(const training::TrainingOptions& o,
                       const std::function<bool(const training::OwnOption&)>& given) {
  for (const training::OwnOption& own : training::kOwnOptions)
    if (given(own) && !has(*o.model, own.name))
      throw UsageError(text("--", own.word(), " belongs to --model ", training::models_with(own.name, " or ")));
}

void check_shared_options(const CLI::App& command, const training::TrainingOptions& o) {
  if (o.model->input == training::Input::characters && o.data.empty())
    throw UsageError(text("--model ", o.model->name, " needs a text file: --data FILE"));
  check_own_options(
      o, [&](const training::OwnOption& own) { return own.flag ? o.*own.flag : command.count("--" + own.word()) > 0; });
  if (command.count("--task") > 0 && (o.model->input != training::Input::pairs || !o.data.empty()))
    throw UsageError(
        text("--task belongs to --model ", training::models_with(training::Input::pairs, " or "), " without --data"));
  require(o.lr > 0 && std::isfinite(o.lr), "--lr", o.lr, "a number above 0");
  require(o.warmup >= 0, "--warmup", o.warmup, "a whole number from 0 on");
  require(o.decay() >= 0 && std::isfinite(o.decay()), "--weight-decay", o.decay(), "a number from 0 on");
  require(o.clip >= 0 && std::isfinite(o.clip), "--clip", o.clip, "a number from 0 on");
  require(o.eps > 0 && std::isfinite(o.eps), "--eps", o.eps, "a number above 0");
  if (o.scaled_gains && !o.affine) throw UsageError("--scaled-gains needs --gain or --affine");
  check_threads(command, o.threads);
  check_device(o.device);
  require_positive("--steps", o.step_count());
  require_positive("--batch", o.batch);
  require_positive("--depth", o.depth);
  require_positive("--heads", o.heads);
  for (const training::OwnOption& own : training::kOwnOptions)
    if (own.number) require_positive(("--" + own.word()).c_str(), o.*own.number);
  require(o.width >= 2, "--width", static_cast<double>(o.width), "a whole number from 2 on");
  for (const auto& [option, value] :
       {std::pair{"--head-width", o.head_width}, {"--kv-heads", o.kv_heads}, {"--mlp", o.mlp}})
    if (command.count(option) > 0) require_positive(option, value);
  if (o.head_width == 0 && o.width % o.heads != 0)
    throw UsageError(text("--heads: ", o.heads, " does not divide the width ", o.width, "; --head-width sets one"));
  if (o.kv_heads > 0 && o.heads % o.kv_heads != 0)
    throw UsageError(text("--kv-heads: ", o.kv_heads, " does not divide the heads, ", o.heads));
  const int64_t head_width = o.head_width > 0 ? o.head_width : o.width / o.heads;
  if (nn::rotates(o.positions) && head_width % 2 != 0)
    throw UsageError(text("--positions: rotary ones turn pairs of entries, a head's width ", head_width, " is odd"));
}

}  // namespace isonorm::tools
