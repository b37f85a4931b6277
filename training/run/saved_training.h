// SavedTraining: the checkpoint of a training. The same program continues from it, bit-equal if batches and rates
// depend on the step alone.
#pragma once

#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "training/run/content.h"
#include "training/steps/callbacks.h"

namespace isonorm::training {

// The file has the contents, the number of steps and the state of the calling thread's random generator.
//
//   training::SavedTraining saved("run.ckpt", net, opt);                                  // a model and its optimizer
//   training::SavedTraining saved("gan.ckpt", {{"generator", generator}, {"critic", critic}, {"opt_g", opt_g},
//                                              {"opt_c", opt_c}, {"average", ema}, {"seen", seen}});
//   for (int step = saved.done(); step < 1000; ++step) { ...; if (step % 100 == 99) saved.save(step + 1); }
//
// A SavedTraining keeps references to the contents. In a loop, add it as the last callback, after the callbacks that
// change the contents: loop.every(10min, std::ref(saved)).
class SavedTraining {
 public:
  // If the file exists, the contents, the calling thread's random generator and done() take their values from it. If
  // the file is damaged, they take them from FILE.previous. Throws like checkpoint_to_go_on_from(). Also throws if the
  // contents differ: a name is missing or unexpected, or a content has another kind, shape or dtype, or is a number
  // that the object's type does not hold. Throws, too, if two contents have one name, or if no content is a model with
  // parameters or a tensor. If it throws, nothing changes.
  SavedTraining(const std::string& path, std::vector<Content> contents);
  // The contents are "model", "optimizer" and "best", as in a checkpoint of `isonorm train` (content.h).
  SavedTraining(const std::string& path, nn::Module& model, optim::Optimizer& optimizer);
  SavedTraining(const std::string& path, nn::Module& model, optim::Optimizer& optimizer, BestLoss& best);

  int done() const { return done_; }  // steps of the file; 0: there was none
  // Replaces the file by the state after `step` steps. The old file stays as FILE.previous if it is not damaged. Throws
  // as save_checkpoint(), and if `step` is negative; then the file stays.
  void save(int step);
  bool operator()(const TrainingStep& step) { return save(step.step), true; }

 private:
  SavedTraining(const std::string& path, std::vector<Content> contents, const std::optional<NewestCheckpoint>& newest);

  const std::vector<Content> contents_;
  CheckpointFile file_;
  int done_ = 0;
};

// The tensors of a checkpoint's content, for a program that does not train:
//   critic.load_state_dict(training::saved_tensors("gan.ckpt", "critic"));
// Throws like load_newest_checkpoint(), and if the file has no content with this name.
TensorMap saved_tensors(const std::string& path, const std::string& content);

}  // namespace isonorm::training
