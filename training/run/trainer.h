// Trainer: a whole training with its data, checkpoint, test passes, logs and progress. `isonorm train` is this class.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/system/stopwatch.h"
#include "core/system/terminal.h"
#include "distributed/parallel/sharded_parameters.h"
#include "distributed/world.h"
#include "io/checkpoint.h"
#include "io/unfinished.h"
#include "optim/ema.h"
#include "optim/optimizer.h"
#include "training/records/run_logs.h"
#include "training/records/training_result.h"
#include "training/run/trainer_options.h"
#include "training/source.h"
#include "training/steps/callbacks.h"

namespace isonorm::training {

// The checkpoint that a training continues from. While the object lives, no other process trains into the files
// TrainerOptions::checkpoint and best.
struct LockedCheckpoint {
  // With MPI every rank makes one, and the first rank locks the files. Throws (io) if another process has locked a
  // file; throws as checkpoint_to_go_on_from(); and throws Disagreement if ranks read different files.
  explicit LockedCheckpoint(const TrainerOptions& options);

  const io::NameLock lock, best_lock;
  std::optional<NewestCheckpoint> newest;  // none: there is no file yet
};

//   training::TrainerOptions o;
//   o.training.data = "README.md", o.training.steps = 1000;
//   o.checkpoint = "gpt.ckpt", o.best = "best.ckpt", o.evaluate_every = 100, o.patience = 5;
//   training::Trainer trainer(o);  // the same program, started again, continues from gpt.ckpt
//   trainer.train();
//   std::printf("test loss %.4f\n", trainer.result().evaluations.back().loss);
//
// The learning rate, the batch and the random numbers of a step follow from its number, the options and the seed. A
// training that was interrupted and continued therefore has the bits of an uninterrupted training.
//
// With MPI all ranks make a Trainer with the same options (docs/distributed.md). The first rank prints and writes.
class Trainer {
 public:
  // Reads the data, builds model and optimizer, and loads the checkpoint if there is one. Sets the process's number of
  // threads if the options have one. Throws UsageError if options contradict each other, and Error if the checkpoint
  // belongs to another training (identity.h), or a file cannot be read or will not be writable.
  explicit Trainer(const TrainerOptions& options);
  Trainer(const TrainerOptions& options, std::unique_ptr<LockedCheckpoint> files);

  // Trains up to the last step and tests the model; with an average of the weights, tests the average. Returns false if
  // stop(), which it asks after every step and every test batch, returned true. The checkpoint is written either way.
  // Throws (io) if a log cannot be written, after it has saved the checkpoint. Throws Diverged if the loss, weights or
  // the optimizer's state are not finite; then it saves nothing.
  bool train(std::function<bool()> stop = [] { return false; });

  nn::Module& model() { return *model_; }
  int step_count() const { return step_; }  // updates so far
  const TrainerOptions& options() const {
    return options_;
  }  // with the number of steps and the warm-up that follow from the data
  const TrainingResult& result() const { return result_; }

 private:
  void load_initial_weights();
  void shard_parameters();
  void check_continues(const NewestCheckpoint& newest);
  TensorMap load(const NewestCheckpoint& newest);  // returns the state of the average
  void check_room_for_checkpoint() const;
  void open_logs();
  void announce();
  StepOptions step_options();
  void say(const std::string& line);
  void record(const TrainingStep& step);
  void record(const Evaluation& evaluation);
  bool test();
  bool lacks_test() const;  // an interruption prevented the test pass of the present step
  void check_finite(const std::string& where) const;
  void save();
  void save_average();
  DataSpec spec() const;
  Checkpoint checkpoint();                                     // collective: all ranks call it
  template <class Write> void write_logs(const Write& write);  // calls write(RunLog&) with each log
  bool best_file_holds_best() const;
  bool keeps_best() const { return options_.patience > 0 || !options_.best.empty(); }
  bool is_first() const { return ranks_.rank() == 0; }
  bool shares_state() const { return options_.training.zero == 1 && ranks_.size() > 1; }
  bool stopped();  // collective; true after stop(), or after a log failed
  int steps() const { return options_.training.step_count(); }

  distributed::Group& ranks_ = distributed::world();
  TrainerOptions options_;
  const std::unique_ptr<LockedCheckpoint> files_;
  const Stopwatch watch_;
  Source source_;
  TrainingResult result_;
  Metadata identity_;  // of this training, in its checkpoint (identity.h)
  std::unique_ptr<nn::Module> model_;
  std::unique_ptr<parallel::ShardedParameters> shards_;  // with several ranks and zero 2 or 3; else null
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<optim::Ema> average_;  // null without training.ema
  StatusLine status_;
  std::vector<std::unique_ptr<RunLog>> logs_;
  BestLoss best_;
  std::vector<std::string> summary_;  // of the model
  std::function<bool()> asked_to_stop_ = [] { return false; };
  std::exception_ptr log_failure_;  // ends the training after the checkpoint was saved
  int step_ = 0, saved_step_ = -1;
  bool stop_ = false;
  CheckpointFile saved_;
};

}  // namespace isonorm::training
