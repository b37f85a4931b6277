#include "training/fields.h"

#include <algorithm>

#include "distributed/world.h"
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

template <> struct Word<Warmup> {
  static std::string values() { return "STEPS/SHARE"; }
  static std::string expected(Limits) { return "a whole number of steps, or a share of --steps below 1, such as 0.1"; }
  static std::string written(Warmup w) { return w.share > 0 ? shortest(w.share) : text(w.steps); }
  static bool read(const std::string& word, Warmup& value) {
    Warmup read;
    if (!read_number(word, read.steps) && !read_number(word, read.share)) return false;
    if (!(read.steps >= 0 && read.share >= 0 && read.share < 1)) return false;
    return value = read, true;
  }
  static bool allowed(Warmup, Limits) { return true; }
};

namespace {

// Limits for sizes: the product of two does not overflow.
constexpr Limits size(double least) { return {.least = least, .most = 1 << 24}; }

// "decoupled for adamw (default 0.01), sgdw, lion; else L2 (default 0)": optimizers with a default of their own come
// first.
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

// The structured binding names every member, so a new one does not compile until it is listed. The norm is not an
// option here: the stream's form determines it.
void fields(nn::TransformerOptions& o, Fields& f) {
  auto& [width, depth, heads, head_width, kv_heads, mlp_width, activation, positions, rotary_base, rotary_share,
         qk_norm, parallel, shared_norm, causal, affine, norm_bias, folded, scaled_gains, bias, qkv_bias, norm, eps,
         final_norm, branch, connection, precision, initialisation] = o;
  f.group = "Model";
  f("width", width, "hidden size: the width of the residual stream", size(2), kInBoth);
  f("depth", depth, "Transformer blocks", {.least = 1, .most = 1 << 16}, kInBoth);
  f("heads", heads, "attention heads; they divide the width", size(1), kInBoth);
  f("head_width", head_width, "width of a head (default: width / heads)", size(0), kInBoth);
  f("kv_heads", kv_heads, "key/value heads, each used by heads / kv-heads query heads (default: heads)", size(0),
    kInOnnx);
  f("mlp_width", mlp_width, "width of the MLP (default: 4 width)", size(0), kInBoth);
  f("activation", activation, "activation of the MLP", {}, kInBoth);
  f("positions", positions, "positional encoding", {}, kInBoth);
  f("rotary_base", rotary_base, "base of rotary position embeddings", above(0), kInOnnx);
  f("rotary_share", rotary_share, "share of each head's entries that rotary embeddings rotate",
    {.most = 1, .above = true}, kInOnnx);
  f("qk_norm", qk_norm, "norm of the queries and keys of each head", {}, kInOnnx);
  f("parallel", parallel,
    "attention and MLP of a block read the same stream, and the sum of their outputs is added to it", {}, kInOnnx);
  f("shared_norm", shared_norm, "with --parallel: attention and MLP read the same norm", {}, kInOnnx);
  f("causal", causal, "", {}, kInOnnx);
  f.group = "Norms and residual stream";
  f("affine", affine, "norms have a learned gain and bias", {}, kInBoth);
  f("norm_bias", norm_bias, "with --affine: norms have a learned gain and no bias", {}, kInBoth);
  f("folded", folded, "", {}, kInOnnx);
  f("scaled_gains", scaled_gains, "with --affine: the gains of the norms of block l start at 1/sqrt(l)", {},
    kTrainingOnly | kInBoth);
  f.group = "Model";
  f("bias", bias, "linear layers have no biases", {}, kInBoth);
  f("qkv_bias", qkv_bias, "with --no-bias: queries, keys and values have biases", {}, kInBoth);
  f.group = "Norms and residual stream";
  f("eps", eps, "added inside the root of every norm", above(0), kInBoth);
  f("final_norm", final_norm, "no norm before the head", {}, kInOnnx);
  auto& [dropout, stochastic_depth, layer_scale] = branch;
  f.group = "Regularization";
  f("dropout", dropout, "dropout probability of the entries of a residual branch", kProbability,
    kTrainingOnly | kInOnnx);
  f("stochastic_depth", stochastic_depth, "probability that a residual branch is skipped for an example", kProbability,
    kTrainingOnly | kInOnnx);
  f.group = "Norms and residual stream";
  f("layer_scale", layer_scale, "initial value of a learned factor per entry of a residual branch; 0: no factor", {},
    kInOnnx);
  f("connection", connection, "residual connection: how norms and sub-layers are connected to the residual stream");
  f.group = "Precision and devices";
  f("precision", precision.products,
    "dtype of matrix products and of saved activations: full (the dtype of --dtype) or bf16; weights and optimizer "
    "stay "
    "f32",
    {}, kTrainingOnly | kInOnnx);
  f("stream_precision", precision.residual, "dtype of the residual stream; bf16 needs --precision bf16", {},
    kTrainingOnly | kInOnnx);
  f.group = "Model";
  f("initialisation", initialisation,
    "by_layer: each layer's own; normal: N(0, 0.02^2), tables N(0, 2/5); scaled: normal, smaller where branches end; "
    "with --tied tables are N(0, 0.02^2) in all three",
    {}, kTrainingOnly | kInBoth);
}

void fields(streams::StreamOptions& o, Fields& f) {
  auto& [form, storage, centre_readers] = o;
  f.group = "Norms and residual stream";
  f("form", form, "form of the residual stream and its norms", {}, kInOnnx);
  f("storage", storage, "raw: parameters in the Pre-LN model's coordinates; mapped: in the form's own", {}, kInOnnx);
  f("centre_readers", centre_readers,
    "make the row sums of the readers zero: the same function, with less error in f32", {}, kInOnnx);
}

void fields(TrainingOptions& o, Fields& f) {
  auto& [model, data, test_data, test_share, token_vocab, row_length, spec, tokenizer, ids, is_text, letters, task,
         optimizer, lr, warmup, schedule, min_lr, tuning, weight_decay, clip, clip_gates, clip_value, random_crop,
         random_flip, mixup, label_smoothing, loss_l2, decay_matrices_only, no_decay, accumulate, ema, resume_at, ranks,
         rank_invariant, zero, steps, batch, dtype, device, seed, threads] = o;
  f.group = "Data";
  f("letters", letters, "without --data: alphabet size of the generated text or pairs; 0: sentences");
  f("data", data,
    text(models_with(Input::images),
         ": a folder of the four idx.gz files of MNIST or Fashion-MNIST (default: the folder of the package "
         "dataset-fashion-mnist), of the six .bin files of CIFAR-10, or of pictures, CLASS/*.png, or "
         "train/CLASS/*.png and test/CLASS/*.jpg (or val, valid, validation, dev; EXIF orientation is not applied); or "
         "one of mnist, fashion_mnist, "
         "cifar10, looked for in "
         "$ISONORM_DATA, ~/.cache/isonorm and "
         "/usr/share/datasets; ",
         models_with(Input::text), ": a text file, whose bytes are the tokens; ", models_with(Input::pairs),
         ": a folder with source.txt and target.txt, line by line a pair (default: pairs generated for --task)"));
  f("test_data", test_data,
    "file or folder like --data for test passes, which then use nothing of --data (default: the data's own test "
    "images, "
    "else --test-share)");
  f("test_share", test_share,
    "held-out share of --data for test passes: the end of a text or of the pairs, a random part of each class of "
    "pictures; 0: no test passes",
    kProbability);
  f("token_vocab", token_vocab,
    text(models_with(Input::text),
         ": size of the vocabulary; --data is then a file of token ids below this number, little-endian without a "
         "header, or a text if there is a tokenizer; 0: the size for the tokenizer or the initial weights, without "
         "which the tokens are the bytes of a text"));
  f("tokenizer", tokenizer,
    text(models_with(Input::text),
         ": the tokenizer of --data, as for isonorm tokenize (default: the one of the initial weights); it is saved in "
         "the checkpoint"));
  f("ids", ids,
    text(models_with(Input::text),
         ": --data and --test-data are token ids of this width, whatever they look like; the vocabulary comes from "
         "--token-vocab, --tokenizer or the initial weights (default: the bytes of the file decide)"));
  f("text", is_text, text(models_with(Input::text), ": --data and --test-data are texts, whatever bytes they have"));
  f("row_length", row_length,
    text(
        models_with("context"),
        ": tokens in a row of a batch, up to the context, which a model that comes from a file keeps; 0: the context"));
  f("task", task, text(models_with(Input::pairs), " without --data: the task of the generated pairs"));
  f.group = "Optimizer";
  f("optimizer", optimizer, "optimizer");
  f("lr", lr, "peak learning rate", above(0));
  f("warmup", warmup,
    "linear warm-up of the learning rate before --schedule: a number of steps, or a share of --steps, such as 0.1 "
    "(default: 20, or --steps if fewer)");
  f("schedule", schedule, "schedule of the learning rate after the warm-up");
  f("min_lr", min_lr, "learning rate at the end of --schedule");
  auto& [beta1, beta2, momentum, optimizer_eps] = tuning;
  f("beta1", beta1, tuning_help("decay of the mean of the gradients", &Tuning::beta1), kProbability);
  f("beta2", beta2, tuning_help("decay of the mean of the squared gradients", &Tuning::beta2), kProbability);
  f("momentum", momentum, tuning_help("momentum coefficient", &Tuning::momentum), kProbability);
  f("optimizer_eps", optimizer_eps, tuning_help("added to the denominator of the update", &Tuning::eps), above(0));
  f("weight_decay", weight_decay, decay_help());
  f("clip", clip, "largest global norm of the gradient; 0: no clipping");
  f("clip_gates", clip_gates,
    "largest gradient norm of the gates of gpas connections, applied before --clip; 0: no clipping");
  f("clip_value", clip_value, "largest entry of the gradient; 0: no clipping");
  f.group = "Regularization";
  f("random_crop", random_crop,
    text(models_with(Input::images), ": shift training images by up to this many pixels each way"), {.most = 1 << 16});
  f("random_flip", random_flip, text(models_with(Input::images), ": mirror half of the training images"));
  f("mixup", mixup,
    text(models_with(Input::images),
         ": mixup of each training image and its target with another: l x one + (1 - l) x other, l drawn from "
         "Beta(MIXUP, MIXUP) once per batch; 0: none"));
  f("label_smoothing", label_smoothing,
    "share of each target's weight that is spread over all classes, in training only", kShare);
  f("loss_l2", loss_l2, "weight of an L2 term of the loss, whose gradient is clipped with the rest");
  f.group = "Optimizer";
  f("decay_matrices_only", decay_matrices_only,
    "weight decay on matrices only, not on norms, biases and other vectors");
  f("no_decay", no_decay,
    "no weight decay on parameters whose names match these patterns, separated by commas, such as "
    "'**.bias,*.position': * matches anything but '.', ** anything");
  f.group = "Training";
  f("accumulate", accumulate, "gradient accumulation: number of micro-batches of a step", from(1));
  f.group = "Optimizer";
  f("ema", ema, "decay of an exponential moving average of the weights; 0: no average", kProbability);
  f.group = "Training";
  f("resume_at", resume_at, "step after which all forms are saved, rebuilt and resumed; 0: never");
  f.group = "Precision and devices";
  f("ranks", ranks, "ranks that train each form together, as threads; the reference is trained by one",
    {.least = 1, .most = distributed::kMostRanks});
  f("rank_invariant", rank_invariant,
    "the same bits on any number of ranks that divides --accumulate: one rank computes each micro-batch, and the "
    "gradients are added in a fixed order. Not with --dropout and --stochastic-depth");
  f("zero", zero,
    "ZeRO stage, shards memory over the ranks. 0: nothing; 1: the optimizer state; 2: also gradients; 3: also "
    "parameters, and the backward recomputes each block",
    {.most = 3});
  f.group = "Training";
  f("steps", steps, text("training steps (default: ", o.step_count(), ")"), from(1));
  f("batch", batch, "examples per step", from(1));
  f.group = "Precision and devices";
  f("dtype", dtype, "dtype of parameters and activations");
  f("device", device, "device: cpu, cuda or cuda:N");
  f.group = "Training";
  f("seed", seed, "seed of the weights and the batches");
  f.group = "Precision and devices";
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
