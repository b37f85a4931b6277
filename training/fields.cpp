#include "training/fields.h"

#include <algorithm>

#include "distributed/threads.h"
#include "gpu/device.h"
#include "nn/residual/all.h"
#include "training/from_outside.h"

namespace isonorm::training {

template <> struct Word<nn::Arrangement> : OneOf<nn::Arrangement, Word<nn::Arrangement>> {
  static std::vector<std::string> names() {
    std::vector<std::string> all;
    for (const nn::Arrangement& a : nn::kArrangements) all.emplace_back(a.name);
    return all;
  }
  static const nn::Arrangement& at(size_t i) { return nn::kArrangements[i]; }
  static std::string written(const nn::Arrangement& a) { return name_and_origin(a); }
};

template <> struct Word<const OptimizerRow*> : OneOf<const OptimizerRow*, Word<const OptimizerRow*>> {
  static std::vector<std::string> names() {
    std::vector<std::string> all;
    for (const OptimizerRow& row : optimizers())
      if (row.choice) all.emplace_back(row.name);
    return all;
  }
  static const OptimizerRow* at(size_t i) { return &optimizer(names()[i]); }
  static std::string written(const OptimizerRow* row) { return name_and_origin(*row); }
};

template <> struct Word<Device> {
  static std::string values() { return "DEVICE"; }
  static std::string expected(Limits) { return "a device: cpu, cuda or cuda:N"; }
  static std::string written(Device device) { return text(device); }
  static bool read(const std::string& word, Device& device) {
    const std::optional<Device> named = gpu::device_of(word);
    if (named) device = *named;
    return named.has_value();
  }
  static bool allowed(Device, Limits) { return true; }
};

namespace {

// Of dimensions: two of them can be multiplied.
constexpr Limits size(double least) { return {.least = least, .most = 1 << 24}; }

// "decoupled for adamw (default 0.01), sgdw, lion; else L2 (default 0)": those with a default of their own first.
std::string decay_help() {
  std::string first, rest;
  for (const OptimizerRow& row : optimizers()) {
    if (!row.choice) continue;
    if (row.weight_decay > 0)
      first += text(first.empty() ? "" : ", ", row.name, " (default ", row.weight_decay, ")");
    else if (row.decoupled)
      rest += text(", ", row.name);
  }
  return text("decoupled for ", first, rest, "; else L2 (default 0)");
}

// "decay of the mean of gradients (default: 0.9 for lion, adam, adamw)".
std::string tuning_help(const char* what, std::optional<double> Tuning::*member) {
  std::vector<std::pair<double, std::string>> defaults;
  for (const OptimizerRow& row : optimizers()) {
    const std::optional<double>& value = row.tuning.*member;
    if (!row.choice || !value) continue;
    const auto at = std::ranges::find(defaults, *value, [](const auto& d) { return d.first; });
    if (at == defaults.end())
      defaults.emplace_back(*value, row.name);
    else
      at->second += text(", ", row.name);
  }
  std::string all;
  for (const auto& [value, names] : defaults) all += text(all.empty() ? "" : "; ", shortest(value), " for ", names);
  return text(what, " (default: ", all, ")");
}

}  // namespace

// The bindings name every member: one more does not compile until it has its line. The stream says which norm it is.
void fields(nn::TransformerOptions& o, Fields& f) {
  auto& [width, depth, heads, head_width, kv_heads, mlp_width, activation, positions, rotary_base, rotary_share,
         qk_norm, parallel, shared_norm, causal, affine, norm_bias, folded, scaled_gains, bias, qkv_bias, norm, eps,
         final_norm, branch, connection, precision, initialisation] = o;
  f("width", width, "width of the residual stream", size(2));
  f("depth", depth, "Transformer blocks", {.least = 1, .most = 1 << 16});
  f("heads", heads, "attention heads; they divide the width", size(1));
  f("head_width", head_width, "width of a head (default: width / heads)", size(0));
  f("kv_heads", kv_heads, "heads of keys and values, each shared by as many heads of queries (default: heads)",
    size(0));
  f("mlp_width", mlp_width, "width of the MLP (default: 4 width)", size(0));
  f("activation", activation, "of the MLP");
  f("positions", positions, "positional encoding");
  f("rotary_base", rotary_base, "base of rotary positions", above(0));
  f("rotary_share", rotary_share, "share of a head's entries that rotary positions turn", {.most = 1, .above = true});
  f("qk_norm", qk_norm, "norm of each head's queries and keys");
  f("parallel", parallel, "attention and MLP of a block read one stream, and their sum is added");
  f("shared_norm", shared_norm, "with --parallel: both branches read one norm");
  f("causal", causal);
  f("affine", affine, "norms with learned gain and bias");
  f("norm_bias", norm_bias, "with --affine: norms with a learned gain alone");
  f("folded", folded);
  f("scaled_gains", scaled_gains, "with --affine: gains of the norms of block l begin at 1/sqrt(l)");
  f("bias", bias, "linear maps without biases");
  f("qkv_bias", qkv_bias, "with --no-bias: biases of queries, keys and values all the same");
  f("eps", eps, "added inside the root of every norm", above(0));
  f("final_norm", final_norm, "the head reads the bare stream");
  auto& [dropout, stochastic_depth, layer_scale, recentring] = branch;
  f("dropout", dropout, "share of a branch's entries that training sets to 0", kProbability);
  f("stochastic_depth", stochastic_depth, "probability that training leaves a branch out for an example", kProbability);
  f("layer_scale", layer_scale, "initial value of a learned factor for each entry of a branch; 0: none");
  f("recentring", recentring);
  f("connection", connection, "how norms and sub-layers hang on the residual stream");
  f("precision", precision.products,
    "dtype of products and of saved activations: full (that of --dtype) or bf16; weights and optimizer stay f32");
  f("stream_precision", precision.stream, "of the residual stream; bf16 needs --precision bf16");
  f("initialisation", initialisation,
    "of matrices and tables: each layer's own; N(0, 0.02^2), tables N(0, 2/5); the same with less where branches end");
}

void fields(streams::StreamOptions& o, Fields& f) {
  auto& [form, storage, centre_readers] = o;
  f("form", form, "of the residual stream and its norms");
  f("storage", storage, "parameters in the Pre-LN model's coordinates, or in the form's own");
  f("centre_readers", centre_readers, "readers used with zero row sums: the same function, less error in f32");
}

void fields(TrainingOptions& o, Fields& f) {
  auto& [model, data, token_vocab, alphabet, letters, task, optimizer, lr, warmup, schedule, min_lr, tuning,
         weight_decay, clip, clip_gates, clip_value, random_crop, random_flip, mixup, label_smoothing, loss_l2,
         decay_matrices_only, no_decay, accumulate, ema, resume_at, ranks, whole_parts, zero, steps, batch, dtype,
         device, seed, threads] = o;
  f("letters", letters, "without --data: letters of a random text or of made pairs; 0: sentences");
  f("data", data,
    text(models_with(Input::images),
         ": a folder of the four idx.gz files of MNIST or Fashion-MNIST (default: where the package "
         "dataset-fashion-mnist puts them), of CIFAR-10's six .bin files, or of pictures, train/CLASS/*.png and "
         "test/CLASS/*.jpg; or mnist, fashion_mnist, cifar10, looked for in $ISONORM_DATA, ~/.cache/isonorm and "
         "/usr/share/datasets; ",
         models_with(Input::characters),
         ": a text file, its characters being the tokens, its last tenth being what the test pass reads; ",
         models_with(Input::pairs),
         ": a folder of source.txt and target.txt, whose lines belong together (default: pairs made for --task)"));
  f("token_vocab", token_vocab,
    text(
        models_with(Input::characters),
        ": --data is a file of token ids, from 0 to below this: little-endian u16, or u32 where this is over 65536, no "
        "header; 0: a text"));
  f("task", task, text(models_with(Input::pairs), " without --data: what made pairs are of"));
  f("optimizer", optimizer, "optimizer");
  f("lr", lr, "peak learning rate", above(0));
  f("warmup", warmup, "steps of linear warm-up; --schedule follows");
  f("schedule", schedule, "learning rate after the warm-up");
  f("min_lr", min_lr, "rate at which --schedule ends");
  auto& [beta1, beta2, momentum, optimizer_eps] = tuning;
  f("beta1", beta1, tuning_help("decay of the mean of gradients", &Tuning::beta1), kProbability);
  f("beta2", beta2, tuning_help("decay of the mean of their squares", &Tuning::beta2), kProbability);
  f("momentum", momentum, tuning_help("momentum coefficient", &Tuning::momentum), kProbability);
  f("optimizer_eps", optimizer_eps, tuning_help("added to the denominator of the update", &Tuning::eps), above(0));
  f("weight_decay", weight_decay, decay_help());
  f("clip", clip, "largest global norm of the gradient; 0: no clipping");
  f("clip_gates", clip_gates,
    "largest norm of the gradients of the gates of gpas connections, before --clip; 0: no limit");
  f("clip_value", clip_value, "largest entry of the gradient; 0: no clipping");
  f("random_crop", random_crop,
    text(models_with(Input::images), ": shift training images by up to this many pixels each way"), {.most = 1 << 16});
  f("random_flip", random_flip, text(models_with(Input::images), ": half of the training images are mirrored"));
  f("mixup", mixup,
    text(models_with(Input::images),
         ": each training image is mixed with another one, and so are their targets: l and 1 - l of them, l from "
         "Beta(MIXUP, MIXUP) a batch; 0: none"));
  f("label_smoothing", label_smoothing,
    "share of each target's weight that is spread over all classes, in training alone", kShare);
  f("loss_l2", loss_l2, "L2 as a term of the loss: its gradient is clipped with the rest");
  f("decay_matrices_only", decay_matrices_only, "no weight decay on norms, biases and other vectors");
  f("no_decay", no_decay,
    "no weight decay on parameters that match these patterns, separated by commas: * matches all but '.', ** anything; "
    "'**.bias,*.position'");
  f("accumulate", accumulate, "parts in which a batch is differentiated", from(1));
  f("ema", ema, "decay of an exponential moving average of the weights; 0: none", kProbability);
  f("resume_at", resume_at, "step after which all forms are saved, rebuilt and resumed; 0: never");
  f("ranks", ranks, "ranks that train each form together, as threads; the reference is trained by one",
    {.least = 1, .most = distributed::kMostRanks});
  f("whole_parts", whole_parts,
    "on several ranks: each of the --accumulate parts is one rank's, and all are added in their order: the same bits "
    "on any number of ranks that divides them, without --dropout and --stochastic-depth");
  f("zero", zero,
    "what each rank keeps a share of (ZeRO): 1 the optimizer's state, 2 gradients, too, 3 parameters, too, whose "
    "blocks "
    "are computed once more in the backward; less memory",
    {.most = 3});
  f("steps", steps, text("training steps (default ", o.step_count(), ")"), from(1));
  f("batch", batch, "examples in a step", from(1));
  f("dtype", dtype, "of parameters and activations");
  f("device", device, "where it is computed");
  f("seed", seed, "of initialisation and batches");
  f("threads", threads, "threads (default: all)");
}

bool is_of_streams(std::string_view name) {
  streams::StreamOptions o;
  Fields f{.only = name};
  fields(o, f);
  return !f.options.empty();
}

std::vector<Option> options_of(TrainingOptions& options) {
  Fields f{options.model.options()};
  fields(options, f);
  return std::move(f.options);
}

}  // namespace isonorm::training
