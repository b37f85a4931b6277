#include "tools/training.h"

#include <climits>
#include <cmath>
#include <cstdio>

#include "core/memory/bytes.h"
#include "core/printed.h"
#include "core/random.h"
#include "core/system/cores.h"
#include "core/system/foreign_text.h"
#include "core/system/parallel.h"
#include "equivalence/convert/checkpoint_facts.h"
#include "io/data/image_sets.h"
#include "io/replacement.h"
#include "nn/residual/gpas.h"
#include "nn/skip_init.h"
#include "reports/text_layout.h"
#include "streams/stream.h"
#include "tools/ending.h"
#include "tools/interrupt.h"
#include "tools/training_start.h"
#include "tools/tree.h"
#include "training/build_model.h"
#include "training/fields.h"
#include "training/model_file.h"
#include "training/optimizers.h"
#include "training/records/held_out.h"
#include "training/records/training_text.h"
#include "training/steps/loop.h"
#include "training/steps/ranks.h"

namespace isonorm::tools {

using namespace equivalence;

namespace {

// What the names of an average's state begin with in the part of a checkpoint that is the optimizer's.
constexpr std::string_view kAverage = "average.";

// The tensors whose names begin with `prefix`, without it, and the others.
std::pair<TensorMap, TensorMap> parted(const TensorMap& state, std::string_view prefix) {
  std::pair<TensorMap, TensorMap> parts;
  for (const auto& [name, tensor] : state)
    if (name.starts_with(prefix))
      parts.first.add(name.substr(prefix.size()), tensor);
    else
      parts.second.add(name, tensor);
  return parts;
}

// Throws where a checkpoint's step is not its optimizer's.
void check_agreement(const TensorMap& optimizer, int step) {
  int64_t updates = 0;
  for (const auto& [name, tensor] : optimizer)
    if (name.ends_with(".step") && tensor.dtype() == DType::i64)
      for (int64_t n : tensor.to_vector<int64_t>()) updates = std::max(updates, n);
  check(updates == step, "it is after step ", step, ", its optimizer after ", updates);
}

// The steps whose batches have as many images, pairs or tokens as this many passes over the training data.
int steps_of_epochs(double epochs, const training::Source& source) {
  const double all = epochs * static_cast<double>(source.train_count());
  // Three roundings, one of them when the decimal number was read: 1.1 epochs of 100 images in batches of 10 are 11 steps.
  const double steps = std::ceil(all / static_cast<double>(source.batch_count()) * (1 - 0x1p-51));
  check(steps <= INT_MAX, "--epochs ", epochs, ": these are ", steps, " steps, expected at most ", INT_MAX);
  return static_cast<int>(steps);
}

// "16 steps of 64 images: 1024 images, 10.24 times the 100 to train on; warm-up: 16 steps".
std::string length_text(const training::TrainingOptions& o, const training::Source& source) {
  const training::Input input = o.model.row().input;
  const char* noun = input == training::Input::pairs ? "pair" : input == training::Input::images ? "image" : "token";
  const double all = static_cast<double>(source.batch_count()) * o.step_count();
  const std::vector<std::string>& names = source.options().spec.classes;
  const std::string classes = names.empty() ? "" : text("; ", names.size(), " classes: ", data::class_list(names));
  return text(plural(o.step_count(), "step"), " of ", plural(source.batch_count(), noun), ": ", printed("%.0f ", all),
              noun, all == 1 ? "" : "s", ", ", printed("%.2f", all / static_cast<double>(source.train_count())),
              " times the ", source.train_count(), " to train on; warm-up: ", plural(o.warmup_steps(), "step"),
              classes);
}

// True if the checkpoint of an older version has a warm-up that is longer than its training, which then was cut.
bool cuts_warmup(const NewestCheckpoint& newest) {
  const Scope scope(newest.path);
  return integer_at(newest.checkpoint.values, "warmup") > integer_at(newest.checkpoint.values, "steps");
}

// The generator of a step's draws (dropout) follows from its number: a training that goes on draws what it would have.
void seed_step(uint64_t seed, int64_t step) { default_generator() = {seed, static_cast<uint64_t>(step + 1) << 40}; }

}  // namespace

Training::Training(TrainOptions& o, std::optional<NewestCheckpoint> newest)
    : o_(o), source_(o.training), status_(stderr, o.output.quiet), best_(o.patience) {
  if (o.epochs > 0) o.training.steps = steps_of_epochs(o.epochs, source_);
  if (!newest || !cuts_warmup(*newest)) check_warmup(o.training);
  o.training.warmup = o.training.warmup_steps();
  source_.set_length(o.training.step_count(), o.training.warmup_steps());
  check(!keeps_best() || source_.test_count() > 0, o.training.data,
        ": there is nothing to test on, as --best and --patience ask for");
  const training::TrainingOptions& options = source_.options();
  const streams::StreamOptions& stream = options.model.stream();
  result_.form = name_of(stream.form);
  result_.options = options;
  result_.manifest = manifest_of(o, source_);
  identity_ = identity(o, source_);
  if (newest) {
    identify(*newest);
    const Scope scope(newest->path);  // before memory is taken for what a file says
    options.model.check_size(newest->checkpoint.weights);
  }
  manual_seed(options.seed);
  {
    const nn::SkipInit skip(newest || !o.init.empty());  // values that are loaded below
    model_ = build_model(options, stream);
  }
  if (options.clip_gates > 0 && nn::gates(*model_).empty())
    throw UsageError(text("--clip-gates: connections ", options.model.transformer().connection.name, " have no gates"));
  result_.parameters = model_->parameter_count();
  if (!newest) begin();
  summary_ = tree_of(model_->state_dict());
  share();
  optimizer_ = build_optimizer(options, model_->named_parameters());
  catch_interrupt();  // a long construction ends at once
  TensorMap averages;
  if (newest) averages = resume(*newest);
  if (o.training.ema > 0) {
    average_ = std::make_unique<optim::Ema>(model_->parameters(),
                                            optim::EmaOptions{.decay = o.training.ema, .warmup = o.ema_warmup});
    if (newest) average_->load_state_dict(averages);
  }
  int64_t bytes = 0;  // at least, of a checkpoint
  for (const nn::NamedParameter& p : model_->named_state()) bytes += byte_size(p.tensor);
  for (const auto& [_, tensor] : optimizer_->live_state()) bytes += byte_size(tensor);
  if (!o.checkpoint.empty() && is_first()) io::Replacement::rehearse(o.checkpoint, bytes);
  result_.first_step = step_ + 1;
  if (const auto init = identity_.find("init"); init != identity_.end()) result_.manifest.init_sha256 = init->second;
  if (!result_.manifest.init_sha256.empty() && o.init.empty()) result_.manifest.command.clear();  // which file it was
  open_logs();
  std::string words = text("step ", step_, " checkpoint ", !o_.checkpoint.empty(), " best ", !o_.best.empty());
  for (const Metadata& values : {identity_, kept(o)})
    for (const auto& [name, value] : values) words += text(", ", name, ' ', value);
  ranks_.check_same(words, "checkpoint, data or option");
}

void Training::begin() {
  check(!o_.extend, o_.checkpoint, ": there is no checkpoint to extend");
  if (o_.init.empty()) return;
  const TensorMap weights =
      initial_weights(o_.init, *model_, o_.training.dtype, source_.options().spec, o_.extend_alphabet);
  const Scope scope(o_.init);
  model_->load_state_dict(weights);
  check_weights(text(o_.init, ": "));
  say(text(o_.init, ": beginning with its weights"));
  for (const std::string& note : spec_notes(training::spec_of(SafetensorsFile(o_.init)), source_))
    say(text(o_.init, ": ", note));
}

void Training::share() {
  if (o_.training.zero < 2 || ranks_.size() == 1) return;
  if (o_.training.whole_parts)
    throw UsageError("--whole-parts with --zero 2 or 3: gradients are summed part by part of the batch; take --zero 1");
  if (o_.training.ema > 0)
    throw UsageError("--ema with --zero 2 or 3: the average is of whole parameters; take --zero 1");
  shards_ = std::make_unique<parallel::ShardedParameters>(
      *model_, ranks_, parallel::ShardedParametersOptions{.keep_whole = o_.training.zero == 2});
  if (o_.training.zero == 3) nn::recompute(*model_);
}

// Whether the checkpoint is one of this training, and after how many steps.
void Training::identify(const NewestCheckpoint& newest) {
  const auto& [checkpoint, from] = newest;
  checkpoint_is_good_ = from == o_.checkpoint;
  const int64_t step = integer_at(checkpoint.values, "step");
  identity_ = continued(checkpoint, from, step, o_, identity_);
  check(step >= 0 && step <= steps(), from, ": is after step ", step, ", --steps is ", steps());
  step_ = static_cast<int>(step);
}

TensorMap Training::resume(const NewestCheckpoint& newest) {
  const auto& [checkpoint, from] = newest;
  const Scope scope(from);
  shards_ ? shards_->load(checkpoint.weights) : void(model_->load_state_dict(checkpoint.weights));
  const auto [averages, optimizer] = parted(checkpoint.optimizer, kAverage);
  check_agreement(optimizer, step_);
  if (shards_)
    shards_->load_state(*optimizer_, optimizer);
  else
    optimizer_->load_state_dict(shares_state() ? training::own_state(ranks_, optimizer_->parameters(), optimizer)
                                               : optimizer);
  check_weights(text(from, ": "));
  if (const auto tests = checkpoint.values.find(kTests); tests != checkpoint.values.end()) {
    check(best_.read(tests->second) && best_.last_step() <= step_, "its test passes are ", Shown{tests->second});
    if (ranks_.any(is_first() && !o_.best.empty() && !holds_best()))
      best_ = training::BestLoss(o_.patience);  // the least loss was that of another file
    else if (keeps_best())
      result_.best = {.step = best_.step(), .loss = best_.loss()};
  }
  if (checkpoint_is_good_) saved_step_ = step_;
  if (!checkpoint_is_good_ && is_first())
    tell("isonorm train", text(o_.checkpoint, " is damaged: taking the one before it"));
  say(text(from, ": going on after step ", step_));
  for (const std::string& note : spec_notes(o_.training.spec, source_)) say(text(from, ": ", note));
  if (const auto earlier = identity_.find("earlier"); earlier != identity_.end()) {
    result_.manifest.earlier = earlier->second;
    say(text(printable(earlier->second, 1000), "; from here on with the rates of a training of ",
             plural(steps(), "step"),
             step_ < steps() ? printed(", the next being %.2e", o_.training.rates().lr(step_)) : ""));
  }
  return averages;
}

bool Training::holds_best() const try {
  const Metadata values = checkpoint_values(SafetensorsFile(o_.best));
  const auto tests = values.find(kTests);
  training::BestLoss its;
  return tests != values.end() && its.read(tests->second) && its.step() == best_.step() && its.loss() == best_.loss();
} catch (const Error&) {
  return false;
}

bool Training::run() {
  training::Step step(*model_, *optimizer_, training::smoothed_cross_entropy(o_.training.label_smoothing),
                      {.limits = o_.training.limits(),
                       .accumulate = o_.training.accumulate,
                       .activations = o_.activations == nn::Precision::full ? o_.training.dtype : DType::bf16,
                       .captured = o_.captured,
                       .group = &ranks_,
                       .whole_parts = o_.training.whole_parts,
                       .zero = shares_state() ? 1 : 0,
                       .parts = shards_.get()});
  const auto batch = [&](int64_t t) {
    seed_step(o_.training.seed, t);
    return source_.batch(t);
  };
  // The rate of a step follows from its number and the options alone, whatever the steps before it were trained with.
  training::Loop loop(step, batch, o_.training.rates(), {.stop_at_nan = false});  // take() ends it
  loop.every(1, [&](training::TrainingStep s) {
    if (average_) average_->update();
    s.seconds = watch_.seconds();
    return take(s), true;
  });
  training::Progress progress(status_, steps(), step_);
  loop.every(1, std::ref(progress));
  bool waited = best_.over();  // long enough for a better test loss
  loop.every(o_.evaluate_every, [&](const training::TrainingStep& s) {
    const bool whole = s.step == steps() || evaluate();
    waited = s.step < steps() && best_.over();
    return whole && !waited;
  });
  loop.every(o_.save_every, [&](const training::TrainingStep&) { return save(), true; });
  loop.every(1, [&](const training::TrainingStep&) { return !stopped(); });
  if (const CoreUse& use = core_use(); ranks_.size() > 1)
    say(text(ranks_.size(), " ranks (", use.ranks, " on this machine) with ", plural(num_threads(), "thread"),
             " each on ", plural(std::ssize(use.cores), "core")));
  for (const std::string& line : source_.readings()) say(line);
  if (source_.test_tokens() < source_.held_out_tokens() - 1)
    say(text("a test pass predicts ", source_.test_tokens(), " of ", source_.held_out_tokens(), " held-out tokens"));
  if (const auto test = identity_.find("test_data"); test != identity_.end() &&
                                                     test->second == identity_.at(training::kTrainingData) &&
                                                     o_.training.model.row().input != training::Input::images)
    say(text(o_.training.test_data, ": the model is trained on the data that it is tested on"));
  for (const std::string& line : summary_) say(line);
  if (step_ == 0) say(length_text(o_.training, source_));
  if (!source_.tests_match_classes())
    say(text(o_.training.test_data, ": classes go by position: these or the data to train on have no class names"));
  if (o_.checkpoint.empty() && o_.best.empty() && o_.average.empty())
    say("the trained model will not be kept; --checkpoint FILE keeps it");
  // A test pass that an interruption took away is made up for.
  const auto& tested = result_.earlier.evaluations;
  const bool due = step_ > 0 && step_ < steps() && o_.evaluate_every > 0 && step_ % o_.evaluate_every == 0;
  const bool logged = o_.output.log.empty() || (!tested.empty() && tested.back().step == step_);
  if (ranks_.any(due && (!logged || (keeps_best() && best_.last_step() < step_)))) evaluate(), waited = best_.over();
  const bool all = !stopped() && (waited || loop.run(steps(), step_) || (waited && !stop_));
  if (!result_.steps.empty()) progress.end(result_.steps.back());
  save();
  if (all) save_average();
  const auto& passes = result_.evaluations;
  const bool whole = all && ((!passes.empty() && passes.back().step == step_) || evaluate());
  if (waited) result_.patience = best_.since();
  result_.seconds = watch_.seconds();
  if (whole) log([&](training::RunLog& l) { l.end(result_); });
  if (log_failure_) std::rethrow_exception(log_failure_);
  return whole;
}

// A line that stays, broken at spaces if the terminal is narrower.
void Training::say(const std::string& line) {
  const size_t width = line_width(stderr);
  const std::string whole = printable(line);
  if (width == 0 || reports::text_length(whole) <= width) return status_.print(whole);
  for (const std::string& part : reports::lines_of(whole, width)) status_.print(part);
}

bool Training::stopped() { return stop_ = stop_ || ranks_.any(interrupted() || log_failure_); }

void Training::open_logs() {
  const std::string& log = o_.output.log;
  const training::Input input = o_.training.model.row().input;
  if (log.ends_with(".csv"))
    logs_.push_back(std::make_unique<training::CsvLog>(log, step_));
  else if (!log.empty())
    logs_.push_back(std::make_unique<training::JsonLog>(log, result_.manifest, input, step_));
  if (!logs_.empty()) result_.earlier = logs_.front()->earlier();
  if (!o_.tensorboard.empty()) logs_.push_back(std::make_unique<training::EventLog>(o_.tensorboard, step_));
}

template <class Entry> void Training::log(const Entry& entry) try {
  if (!log_failure_)
    for (const auto& log : logs_) entry(*log);
} catch (const Error&) {
  log_failure_ = std::current_exception();
}

void Training::take(const training::TrainingStep& s) {
  step_ = s.step;
  if (!std::isfinite(s.loss))
    throw Diverged(text("the loss of step ", step_, " is not a finite number; the learning rate is ", s.lr));
  result_.steps.push_back(s);
  log([&](training::RunLog& l) { l.step(s); });
}

// Tests the model, with the averaged weights where there are some. Returns false where Ctrl-C came: then there is no
// evaluation.
bool Training::evaluate() {
  nn::Module* models[] = {model_.get()};
  if (average_) average_->apply();
  const auto go_on = [&](int, int) { return !interrupted() && !log_failure_; };
  if (shards_) shards_->gather();  // a rank takes batches by itself
  const std::optional<training::TestPass> pass = test_pass(source_, models, go_on, &ranks_);
  if (shards_) shards_->release();
  if (average_) average_->restore();
  if (!pass) return false;
  if (pass->predictions == 0) return true;
  if (!std::isfinite(pass->scores[0].loss))
    throw Diverged(text("the held-out loss after step ", step_, " is not a finite number"));
  take(training::Evaluation{step_, pass->scores[0].loss, pass->scores[0].right, pass->predictions});
  return true;
}

void Training::take(const training::Evaluation& e) {
  result_.evaluations.push_back(e);
  log([&](training::RunLog& l) { l.evaluation(e); });
  const training::Input input = o_.training.model.row().input;
  if (step_ < steps()) say(text("step ", step_, "/", steps(), "  ", evaluation_text(e, input)));
  if (!keeps_best() || step_ <= best_.last_step()) return;  // after a step that was tested before it was killed
  if (best_.take(step_, e.loss) && !o_.best.empty()) {
    const Checkpoint c = checkpoint();
    ranks_.on_first([&] { save_checkpoint(o_.best, c); });
  }
  result_.best = {.step = best_.step(), .loss = best_.loss()};
}

void Training::check_weights(const std::string& where) const {
  for (const TensorMap& map :
       {shards_ ? shards_->own() : model_->state_dict(), optimizer_ ? optimizer_->live_state() : TensorMap()})
    if (const std::string name = not_finite(map); !name.empty())
      throw Diverged(text(where, "after step ", step_, " ", name, " holds NaN or infinity"));
}

void Training::save() {
  check_weights("");
  if (o_.checkpoint.empty() || saved_step_ == step_) return;
  const Checkpoint c = checkpoint();
  ranks_.on_first([&] {
    if (checkpoint_is_good_) keep_previous_checkpoint(o_.checkpoint);
    save_checkpoint(o_.checkpoint, c);
  });
  checkpoint_is_good_ = true;
  saved_step_ = step_;
}

training::DataSpec Training::spec() const {
  training::DataSpec spec = source_.options().spec;
  spec.train_on(identity_.at(training::kTrainingData), source_.options().test_share);
  spec.row_length = source_.options().row_length;
  return spec;
}

Checkpoint Training::checkpoint() {
  const TensorMap weights = shards_ ? shards_->whole() : model_->state_dict();
  const TensorMap state = shards_          ? shards_->whole_state(*optimizer_)
                          : shares_state() ? training::state_of_ranks(ranks_, optimizer_->live_state())
                                           : optimizer_->live_state();
  ranks_.check_same(weights, "weight");
  ranks_.check_same(training::by_path(*model_, *optimizer_, state), "state of the optimizer");
  Checkpoint c{weights, state, identity_};
  c.values.emplace("step", text(step_));
  c.values.merge(kept(o_));
  c.values.merge(spec().entries());
  if (best_.step() > 0) c.values.insert_or_assign(kTests, best_.written());
  if (average_)
    for (const auto& [name, tensor] : average_->live_state()) c.optimizer.add(text(kAverage, name), tensor);
  return c;
}

void Training::save_average() {
  if (o_.average.empty()) return;
  ranks_.on_first([&] {
    average_->apply();
    training::save_model(o_.average, *model_, training::kModels, spec());
    average_->restore();
  });
}

}  // namespace isonorm::tools
