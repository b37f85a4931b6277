// isonorm train: trains one form, saves and resumes a checkpoint, evaluates.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/reduce.h"
#include "core/parallel.h"
#include "core/random.h"
#include "equivalence/source.h"
#include "io/checkpoint.h"
#include "optim/clip.h"
#include "optim/schedule.h"
#include "tools/interrupt.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/proof_text.h"
#include "tools/terminal.h"

namespace isonorm::tools {
namespace {

using namespace equivalence;

constexpr int64_t kTestRows = 250;   // images of one forward in the test pass
constexpr int kFurtherBatches = 16;  // of text that the training did not see in this order

struct TrainOptions {
  ProofOptions training;
  std::string form = "rms_norm";
  std::string checkpoint;
  int save_every = 500;
  bool quiet = false;
};

template <class... A> std::string printed(const char* format, A... a) {
  char buffer[128];
  std::snprintf(buffer, sizeof buffer, format, a...);
  return buffer;
}

// What a checkpoint must have been trained with to be gone on with.
Metadata identity(const TrainOptions& o) {
  Metadata m = {{"form", o.form}};
  for (const auto& [name, value] : option_list(o.training))
    if (name != "forms" && name != "data" && name != "threads" && name != "controls") m.emplace(name, value);
  return m;
}

class Training {
 public:
  explicit Training(const TrainOptions& o) : o_(o), source_(o.training), status_(stderr, o.quiet) {
    manual_seed(o.training.seed);
    model_ = build_model(o.training, source_.shape(), nn::Stream(nn::stream_form(o.form), o.training.width));
    optimizer_ = build_optimizer(o.training, model_->parameters());
  }

  // Goes on from the checkpoint where there is one.
  void resume() {
    if (o_.checkpoint.empty() || !std::filesystem::exists(o_.checkpoint)) return;
    const Checkpoint c = load_checkpoint(o_.checkpoint);
    for (const auto& [name, value] : identity(o_)) {
      const std::string& before = text_at(c.values, name);
      check(before == value, o_.checkpoint, ": was trained with --", name, " ", before, ", asked for is ", value);
    }
    model_->load_state_dict(c.weights);
    optimizer_->load_state_dict(c.optimizer);
    step_ = static_cast<int>(integer_at(c.values, "step"));
    check(step_ >= 0 && step_ <= steps(), o_.checkpoint, ": its step ", step_, " is not in [0, ", steps(), "]");
    if (!o_.quiet) std::fprintf(stderr, "%s: going on after step %d\n", o_.checkpoint.c_str(), step_);
  }

  // Returns false where it was interrupted. The checkpoint is written either way.
  bool train() {
    const ProofOptions& t = o_.training;
    const optim::Schedule schedule{.peak = t.lr, .warmup = std::min(t.warmup, steps()), .steps = steps()};
    const auto begin = std::chrono::steady_clock::now();
    const int first = step_;
    while (step_ < steps()) {
      if (interrupted()) {
        save();
        return false;
      }
      const double lr = schedule.lr(step_);
      const double loss = step(lr);
      check(std::isfinite(loss), "step ", step_, ": the loss is ", loss);
      if (o_.save_every > 0 && step_ % o_.save_every == 0 && step_ < steps()) save();
      if (!status_.due(step_, steps())) continue;
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      const double rate = (step_ - first) / seconds;
      status_.update(text("step ", step_, "/", steps(), printed("  loss %.4f  lr %.2e  ", loss, lr),
                          duration_text((steps() - step_) / rate), " left", printed("  %.1f steps/s", rate)));
    }
    status_.clear();
    if (step_ > first) save();
    return true;
  }

  // One sentence: accuracy on the test images, or the loss on further batches of the text.
  std::string evaluate() {
    NoGrad no_grad;
    model_->eval();
    const int64_t n = source_.test_count();
    if (n == 0) {
      double loss = 0;
      for (int i = 0; i < kFurtherBatches; ++i) {
        const Examples batch = source_.batch(steps() + i);
        loss += cross_entropy((*model_)(batch.inputs), batch.targets).item() / kFurtherBatches;
      }
      return printed("loss %.4f on %d further batches", loss, kFurtherBatches);
    }
    int64_t right = 0;
    for (int64_t begin = 0; begin < n; begin += kTestRows) {
      const Examples batch = source_.test_rows(begin, std::min(kTestRows, n - begin));
      const std::vector<int64_t> predicted = argmax((*model_)(batch.inputs)).to_vector<int64_t>();
      const std::vector<int64_t> labels = batch.targets.to_vector<int64_t>();
      for (size_t i = 0; i < labels.size(); ++i) right += predicted[i] == labels[i];
    }
    return printed("test accuracy %.2f %% (%lld of %lld images)", 100.0 * right / n, static_cast<long long>(right),
                   static_cast<long long>(n));
  }

  int64_t parameters() const { return model_->parameter_count(); }
  int step_count() const { return step_; }
  int steps() const { return o_.training.step_count(); }
  void clear_status() { status_.clear(); }

 private:
  // One update at rate `lr`; the loss before it.
  double step(double lr) {
    const Examples batch = source_.batch(step_);
    const Tensor loss = cross_entropy((*model_)(batch.inputs), batch.targets);
    optimizer_->zero_grad();
    backward(loss);
    optimizer_->set_lr(lr);
    const double clip = o_.training.clip;
    optimizer_->step(clip > 0 ? optim::clip_factor(optim::gradient_norm(model_->parameters()), clip) : 1);
    ++step_;
    return loss.item();
  }

  void save() {
    if (o_.checkpoint.empty()) return;
    Checkpoint c{model_->state_dict(), optimizer_->state_dict(), identity(o_)};
    c.values.emplace("step", text(step_));
    save_checkpoint(o_.checkpoint, c);
  }

  const TrainOptions& o_;
  Source source_;
  StatusLine status_;
  std::unique_ptr<nn::Module> model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  int step_ = 0;  // updates so far
};

int run(const TrainOptions& o) {
  check_writable(o.checkpoint);
  if (o.training.threads > 0) set_num_threads(o.training.threads);
  catch_interrupt();
  const auto begin = std::chrono::steady_clock::now();
  Training training(o);
  training.resume();
  if (!training.train()) {
    training.clear_status();
    std::fprintf(stderr, "isonorm train: interrupted after step %d of %d%s\n", training.step_count(), training.steps(),
                 o.checkpoint.empty() ? "" : text("; the same command goes on from ", o.checkpoint).c_str());
    return kInterrupted;
  }
  const std::string result = training.evaluate();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("%s, %lld parameters, %d steps: %s in %s\n", o.form.c_str(),
              static_cast<long long>(training.parameters()), training.steps(), result.c_str(),
              duration_text(seconds).c_str());
  return kOk;
}

}  // namespace

Verb add_train(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "Train one form, save and resume a checkpoint, evaluate");
  auto o = std::make_shared<TrainOptions>();
  o->training.steps = 6000;
  o->training.dtype = DType::f32;
  command->add_option("--form", o->form, "layer_norm, rms_norm, crms_norm, crms_isometric or none")
      ->capture_default_str()
      ->check([](const std::string& name) {
        for (const char* known : {"layer_norm", "rms_norm", "crms_norm", "crms_isometric", "none"})
          if (name == known) return std::string();
        return text("\"", name, "\" is not one of layer_norm, rms_norm, crms_norm, crms_isometric, none");
      });
  add_shared_options(*command, o->training);
  command->add_option("--checkpoint", o->checkpoint, "file to go on from where it exists, and to save to");
  command->add_option("--save-every", o->save_every, "steps between two savings; 0: only at the end")
      ->capture_default_str();
  command->add_flag("-q,--quiet", o->quiet, "print the result only");
  command->footer("Ctrl-C saves the checkpoint and exits with 130; the same command goes on, bit-equal.");
  return {command, [o, command] {
            check_shared_options(*command, o->training);
            if (o->save_every < 0)
              throw UsageError(text("--save-every: ", o->save_every, " is not a whole number from 0 on"));
            return run(*o);
          }};
}

}  // namespace isonorm::tools
