// The beginning of a training: options, data, model, optimizer, checkpoint, logs.
#include "training/run/trainer.h"

#include <climits>
#include <cmath>

#include "core/memory/bytes.h"
#include "core/printed.h"
#include "core/random.h"
#include "core/system/cores.h"
#include "core/system/failures.h"
#include "core/system/foreign_text.h"
#include "core/system/parallel.h"
#include "core/system/warning.h"
#include "gpu/device.h"
#include "io/data/image_sets.h"
#include "io/replacement.h"
#include "io/tree.h"
#include "nn/residual/gpas.h"
#include "nn/init.h"
#include "reports/text_layout.h"
#include "streams/stream.h"
#include "training/model_options.h"
#include "training/fields.h"
#include "training/model_file.h"
#include "training/optimizers.h"
#include "training/run/content.h"
#include "training/run/given.h"
#include "training/run/identity.h"
#include "training/steps/ranks.h"

namespace isonorm::training {
namespace {

// Throws if the optimizer of a checkpoint has taken another number of steps.
void check_agreement(const TensorMap& optimizer, int step) {
  int64_t updates = 0;
  for (const auto& [name, tensor] : optimizer)
    if (name.ends_with(".step") && tensor.dtype() == DType::i64)
      for (int64_t n : tensor.to_vector<int64_t>()) updates = std::max(updates, n);
  check(updates == step, "it is after step ", step, ", its optimizer after ", updates);
}

// The number of steps for this number of passes over the training data.
int steps_of_epochs(double epochs, const Source& source) {
  const double all = epochs * static_cast<double>(source.train_count());
  // Three roundings, one of them when the decimal number was read: 1.1 epochs of 100 images in batches of 10 are 11
  // steps.
  const double steps = std::ceil(all / static_cast<double>(source.batch_count()) * (1 - 0x1p-51));
  check(steps <= INT_MAX, "--epochs ", epochs, ": these are ", steps, " steps, expected at most ", INT_MAX);
  return static_cast<int>(steps);
}

// "16 steps of 64 images: 1024 images, 10.24 times the 100 to train on; warm-up: 16 steps".
std::string length_text(const TrainingOptions& o, const Source& source) {
  const Input input = o.model.row().input;
  const char* noun = input == Input::pairs ? "pair" : input == Input::images ? "image" : "token";
  const double all = static_cast<double>(source.batch_count()) * o.step_count();
  const std::vector<std::string>& names = source.options().spec.classes;
  const std::string classes = names.empty() ? "" : text("; ", names.size(), " classes: ", data::class_list(names));
  return text(plural(o.step_count(), "step"), " of ", plural(source.batch_count(), noun), ": ", printed("%.0f ", all),
              noun, all == 1 ? "" : "s", ", ", printed("%.2f", all / static_cast<double>(source.train_count())),
              " times the ", source.train_count(), " to train on; warm-up: ", plural(o.warmup_steps(), "step"),
              classes);
}

// True if a checkpoint of an older version has a warm-up that is longer than its training; it was shortened then.
bool cuts_warmup(const NewestCheckpoint& newest) {
  const Scope scope(newest.path);
  return integer_at(newest.checkpoint.values, "warmup") > integer_at(newest.checkpoint.values, "steps");
}

// Checks the options and applies their process-wide settings. Only the first rank prints and writes.
TrainerOptions started(TrainerOptions o, const distributed::Group& ranks) {
  check_options(o);
  o.training.ranks = ranks.size();
  if (ranks.rank() != 0) o.quiet = true, o.log.clear(), o.tensorboard.clear();
  if (o.training.threads > 0) set_num_threads(o.training.threads);
  gpu::set_deterministic(!o.any_order);
  return o;
}

std::string locked_by_first(const std::string& path) { return distributed::world().rank() == 0 ? path : ""; }

}  // namespace

LockedCheckpoint::LockedCheckpoint(const TrainerOptions& o)
    : lock(locked_by_first(o.checkpoint)), best_lock(locked_by_first(o.best)) {
  distributed::Group& ranks = distributed::world();
  ranks.barrier();  // reading starts after the files are locked
  newest = checkpoint_to_go_on_from(o.checkpoint);
  ranks.check_same(newest ? text(newest->path, " after step ", integer_at(newest->checkpoint.values, "step"))
                          : text("there is no ", o.checkpoint),
                   "checkpoint");
  if (!newest) return;
  const Scope scope(newest->path);
  complete(newest->checkpoint.values);
}

Trainer::Trainer(const TrainerOptions& o) : Trainer(o, std::make_unique<LockedCheckpoint>(o)) {}

Trainer::Trainer(const TrainerOptions& o, std::unique_ptr<LockedCheckpoint> files)
    : options_(started(o, ranks_)),
      files_(std::move(files)),
      source_(options_.training),
      status_(stderr, options_.quiet),
      best_(options_.patience),
      saved_(options_.checkpoint, files_->newest) {
  const std::optional<NewestCheckpoint> newest = std::exchange(files_->newest, {});
  TrainingOptions& t = options_.training;
  if (options_.epochs > 0) t.steps = steps_of_epochs(options_.epochs, source_);
  if (!newest || !cuts_warmup(*newest)) check_warmup(t);
  t.warmup = t.warmup_steps();
  source_.set_length(t.step_count(), t.warmup_steps());
  check(!keeps_best() || source_.test_count() > 0, t.data.empty() ? "generated data" : t.data,
        ": there is nothing to test on, as --best and --patience ask for");
  const TrainingOptions& options = source_.options();
  const streams::StreamOptions& stream = options.model.stream();
  result_.form = name_of(stream.form);
  result_.options = options;
  result_.manifest = manifest_of(options_, source_);
  identity_ = identity(options_, source_);
  if (newest) {
    check_continues(*newest);
    const Scope scope(newest->path);  // before memory is taken for the model that a file describes
    options.model.check_size(newest->checkpoint.weights);
  }
  manual_seed(options.seed);
  {
    const nn::SkipInit skip(newest || !options_.init.empty());  // the weights are loaded below
    model_ = build_model(options, stream);
  }
  if (options.clip_gates > 0 && nn::gates(*model_).empty())
    throw UsageError(text("--clip-gates: connections ", options.model.transformer().connection.name, " have no gates"));
  result_.parameters = model_->parameter_count();
  if (!newest) load_initial_weights();
  summary_ = io::tree_of(model_->state_dict());
  shard_parameters();
  optimizer_ = build_optimizer(options, model_->named_parameters());
  TensorMap averages;
  if (newest) averages = load(*newest);
  if (t.ema > 0) {
    average_ = std::make_unique<optim::Ema>(model_->parameters(),
                                            optim::EmaOptions{.decay = t.ema, .warmup = options_.ema_warmup});
    if (newest) average_->load_state_dict(averages);
  }
  check_room_for_checkpoint();
  result_.first_step = step_ + 1;
  if (const auto init = identity_.find("init"); init != identity_.end()) result_.manifest.init_sha256 = init->second;
  if (!result_.manifest.init_sha256.empty() && options_.init.empty())
    result_.manifest.command.clear();  // the name of the file is unknown
  open_logs();
  std::string words =
      text("step ", step_, " checkpoint ", !options_.checkpoint.empty(), " best ", !options_.best.empty());
  for (const Metadata& values : {identity_, kept(options_)})
    for (const auto& [name, value] : values) words += text(", ", name, ' ', value);
  ranks_.check_same(words, "checkpoint, data or option");
}

void Trainer::load_initial_weights() {
  check(!options_.extend, options_.checkpoint, ": there is no checkpoint to extend");
  const std::string& file = options_.init;
  if (file.empty()) return;
  const TensorMap weights =
      options_.read_init ? options_.read_init(*model_, source_.options().spec) : load_model_file(file).state;
  const Scope scope(file);
  model_->load_state_dict(weights);
  check_finite(text(file, ": "));
  say(text(file, ": beginning with its weights"));
  for (const std::string& note : spec_notes(spec_of(SafetensorsFile(file)), source_)) say(text(file, ": ", note));
}

void Trainer::shard_parameters() {
  const TrainingOptions& t = options_.training;
  if (t.zero < 2 || ranks_.size() == 1) return;
  if (t.rank_invariant)
    throw UsageError(
        "--rank-invariant with --zero 2 or 3: gradients are summed part by part of the batch; take --zero 1");
  if (t.ema > 0) throw UsageError("--ema with --zero 2 or 3: the average is of whole parameters; take --zero 1");
  shards_ = std::make_unique<parallel::ShardedParameters>(
      *model_, ranks_, parallel::ShardedParametersOptions{.keep_whole = t.zero == 2});
  if (t.zero == 3) nn::recompute(*model_);
}

// Throws if the checkpoint belongs to another training. Sets its number of steps.
void Trainer::check_continues(const NewestCheckpoint& newest) {
  const auto& [checkpoint, from] = newest;
  const int64_t step = integer_at(checkpoint.values, "step");
  identity_ = continued(checkpoint, from, step, options_, identity_);
  check(step >= 0 && step <= steps(), from, ": is after step ", step, ", --steps is ", steps());
  step_ = static_cast<int>(step);
}

TensorMap Trainer::load(const NewestCheckpoint& newest) {
  const auto& [checkpoint, from] = newest;
  const Scope scope(from);
  SavedContents contents = contents_of(checkpoint);
  const TensorMap &weights = contents[kModel].state.tensors, &optimizer = contents[kOptimizer].state.tensors;
  shards_ ? shards_->load(weights) : void(model_->load_state_dict(weights));
  check_agreement(optimizer, step_);
  if (shards_)
    shards_->load_state(*optimizer_, optimizer);
  else
    optimizer_->load_state_dict(shares_state() ? own_state(ranks_, optimizer_->parameters(), optimizer) : optimizer);
  check_finite(text(from, ": "));
  if (const auto tests = checkpoint.values.find(kTests); tests != checkpoint.values.end()) {
    check(best_.read(tests->second) && best_.last_step() <= step_, "its test passes are ", Shown{tests->second});
    if (ranks_.any(is_first() && !options_.best.empty() && !best_file_holds_best()))
      best_ = BestLoss(options_.patience);  // the smallest loss belongs to another file
    else if (keeps_best())
      result_.best = {.step = best_.step(), .loss = best_.loss()};
  }
  if (!saved_.is_whole() && is_first()) warn(text(options_.checkpoint, " is damaged: taking the one before it"));
  say(text(from, ": going on after step ", step_));
  for (const std::string& note : spec_notes(options_.training.spec, source_)) say(text(from, ": ", note));
  if (const auto earlier = identity_.find("earlier"); earlier != identity_.end()) {
    result_.manifest.earlier = earlier->second;
    say(text(printable(earlier->second, 1000), "; from here on with the rates of a training of ",
             plural(steps(), "step"),
             step_ < steps() ? printed(", the next being %.2e", options_.training.rates().lr(step_)) : ""));
  }
  saved_step_ = saved_.is_whole() ? step_ : -1;
  return contents[kAverage].state.tensors;
}

bool Trainer::best_file_holds_best() const try {
  const Metadata values = checkpoint_values(SafetensorsFile(options_.best));
  const auto tests = values.find(kTests);
  BestLoss its;
  return tests != values.end() && its.read(tests->second) && its.step() == best_.step() && its.loss() == best_.loss();
} catch (const Error&) {
  return false;
}

// A checkpoint is at least as large as weights and optimizer state.
void Trainer::check_room_for_checkpoint() const {
  if (options_.checkpoint.empty() || !is_first()) return;
  int64_t bytes = 0;
  for (const nn::NamedParameter& p : model_->named_state()) bytes += byte_size(p.tensor);
  for (const auto& [_, tensor] : optimizer_->live_state()) bytes += byte_size(tensor);
  io::Replacement::rehearse(options_.checkpoint, bytes);
}

void Trainer::open_logs() {
  const std::string& log = options_.log;
  const Input input = options_.training.model.row().input;
  if (log.ends_with(".csv"))
    logs_.push_back(std::make_unique<CsvLog>(log, step_));
  else if (!log.empty())
    logs_.push_back(std::make_unique<JsonLog>(log, result_.manifest, input, step_));
  if (!logs_.empty()) result_.earlier = logs_.front()->earlier();
  if (!options_.tensorboard.empty()) logs_.push_back(std::make_unique<EventLog>(options_.tensorboard, step_));
}

// Prints what is trained, and on which data, before the first step.
void Trainer::announce() {
  const TrainingOptions& t = options_.training;
  if (const CoreUse& use = core_use(); ranks_.size() > 1)
    say(text(ranks_.size(), " ranks (", use.ranks, " on this machine) with ", plural(num_threads(), "thread"),
             " each on ", plural(std::ssize(use.cores), "core")));
  for (const std::string& line : source_.readings()) say(line);
  if (source_.test_tokens() < source_.held_out_tokens() - 1)
    say(text("a test pass predicts ", source_.test_tokens(), " of ", source_.held_out_tokens(), " held-out tokens"));
  if (const auto test = identity_.find("test_data");
      test != identity_.end() && test->second == identity_.at(kTrainingData) && t.model.row().input != Input::images)
    say(text(t.test_data, ": the model is trained on the data that it is tested on"));
  for (const std::string& line : summary_) say(line);
  if (step_ == 0) say(length_text(t, source_));
  if (!source_.tests_match_classes())
    say(text(t.test_data, ": classes go by position: these or the data to train on have no class names"));
  if (options_.checkpoint.empty() && options_.best.empty() && options_.average.empty())
    say("the trained model will not be kept; --checkpoint FILE keeps it");
}

// Prints a permanent line, broken at spaces if the terminal is narrower.
void Trainer::say(const std::string& line) {
  const size_t width = line_width(stderr);
  const std::string whole = printable(line);
  if (width == 0 || reports::text_length(whole) <= width) return status_.print(whole);
  for (const std::string& part : reports::lines_of(whole, width)) status_.print(part);
}

// Throws Diverged if a weight or the optimizer's state is NaN or infinite. The message begins with `where`.
void Trainer::check_finite(const std::string& where) const {
  for (const TensorMap& map :
       {shards_ ? shards_->own() : model_->state_dict(), optimizer_ ? optimizer_->live_state() : TensorMap()})
    if (const std::string name = not_finite(map); !name.empty())
      throw Diverged(text(where, "after step ", step_, " ", name, " holds NaN or infinity"));
}

}  // namespace isonorm::training
