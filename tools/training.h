// A training as `isonorm train` runs it: steps, checkpoints, test passes, progress and log. Of several ranks the first prints and
// writes, all read.
#pragma once

#include <memory>
#include <optional>

#include "core/system/stopwatch.h"
#include "core/system/terminal.h"
#include "distributed/world.h"
#include "io/checkpoint.h"
#include "optim/ema.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "distributed/parallel/sharded_parameters.h"
#include "tools/output.h"
#include "tools/train_options.h"
#include "training/records/run_logs.h"
#include "training/records/training_result.h"
#include "training/source.h"
#include "training/steps/callbacks.h"

namespace isonorm::tools {

class Training {
 public:
  // Reads the data, and makes steps of o.epochs. Goes on after `newest`, the checkpoint under o.checkpoint, which the caller has locked and read;
  // throws where the options are not those that it was trained with (see continued()), or its parts contradict each other.
  // Without one it begins with the weights of `init`. From when the model is built, Ctrl-C is for run() to see.
  Training(TrainOptions& o, std::optional<NewestCheckpoint> newest);

  // Trains up to the last step and tests, the averaged weights where there are some. Returns false where Ctrl-C ended it;
  // the checkpoint is written either way. Throws where the log cannot be written, after that; Diverged where loss, weights
  // or the optimizer's state are no longer finite; then none is.
  bool run();

  int step_count() const { return step_; }  // updates so far
  const training::TrainingResult& result() const { return result_; }

 private:
  void begin();
  void share();
  void identify(const NewestCheckpoint& newest);
  TensorMap resume(const NewestCheckpoint& newest);  // the state of the average
  void open_logs();
  void say(const std::string& line);
  void take(const training::TrainingStep& step);
  bool evaluate();
  void take(const training::Evaluation& evaluation);
  void check_weights(const std::string& where) const;  // throws Diverged
  void save();
  training::DataSpec spec() const;
  Checkpoint checkpoint();                              // of now; all ranks ask, the first gets it
  template <class Entry> void log(const Entry& entry);  // calls it with each log
  bool holds_best() const;                              // the file of --best: what is the best so far
  bool keeps_best() const { return o_.patience > 0 || !o_.best.empty(); }
  bool is_first() const { return ranks_.rank() == 0; }
  bool shares_state() const { return o_.training.zero == 1 && ranks_.size() > 1; }
  bool stopped();  // by Ctrl-C or the log; all ranks ask
  void save_average();
  int steps() const { return o_.training.step_count(); }

  distributed::Group& ranks_ = distributed::world();
  const TrainOptions& o_;
  const Stopwatch watch_;
  training::Source source_;
  training::TrainingResult result_;
  Metadata identity_;
  std::unique_ptr<nn::Module> model_;
  std::unique_ptr<parallel::ShardedParameters> shards_;  // of several ranks with --zero 2 or 3
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<optim::Ema> average_;  // null without --ema
  StatusLine status_;
  std::vector<std::unique_ptr<training::RunLog>> logs_;
  training::BestLoss best_;
  std::vector<std::string> summary_;  // of the model
  std::exception_ptr log_failure_;    // a log that cannot be written ends the training as Ctrl-C does, saved
  int step_ = 0, saved_step_ = -1;
  bool stop_ = false;
  bool checkpoint_is_good_ = false;  // the file under its name was read or written by this process
};

}  // namespace isonorm::tools
