// What is trained and how, with the defaults. Plain data.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "io/data/pairs.h"
#include "io/data/text_content.h"
#include "optim/schedule.h"
#include "training/spec/data_spec.h"
#include "training/model_options.h"
#include "training/optimizers.h"
#include "training/steps/step.h"

namespace isonorm::training {

// The length of the linear warm-up of the learning rate: a number of steps, or a share of the training's steps.
struct Warmup {
  Warmup(int steps = 0) : steps(steps) {}
  int of(int all_steps) const { return share > 0 ? static_cast<int>(std::lround(share * all_steps)) : steps; }

  int steps;
  double share = 0;  // from 0 to below 1; above 0 it replaces `steps`
};

struct TrainingOptions {
  ModelOptions model = {};
  std::string data;  // images: a folder or the name of a set (io/data/image_sets.h); gpt: a text file, empty: see
                     // `letters`; translator: folder of source.txt and target.txt, empty: see `task`
  std::string test_data = {};  // examples for test passes, in a file or folder like `data`; empty: a share of `data`
  double test_share = 0.1;     // without test_data: the share at the end of a text or of pairs that no step trains on
  int64_t token_vocab = 0;     // tokens of the model, whose ids are below; 0: the tokens are the bytes of a text
  int64_t row_length = 0;      // tokens in a row of a batch, below the model's context; 0: the context
  DataSpec spec = {};          // of the initial weights; the data complete it
  std::string tokenizer = {};  // file or folder of the tokenizer; empty: spec.tokenizer
  std::optional<data::IdWidth> ids = {};    // data and test_data are token ids of this width; not set: the files decide
  bool is_text = false;                     // data and test_data are texts, whatever bytes they have
  int64_t letters = 13;                     // without data: letters of a random text or of pairs; 0: sentences
  data::Task task = data::Task::translate;  // translator without data: the task of the generated pairs

  const OptimizerRow* optimizer = &training::optimizer("adamw");  // never null
  double lr = 1e-3;
  std::optional<Warmup> warmup = {};             // not set: default_warmup()
  optim::Decay schedule = optim::Decay::cosine;  // of the learning rate after the warm-up
  double min_lr = 0;                             // learning rate at the end of the schedule
  Tuning tuning = {};                            // optimizer's settings; those not set have the defaults in its row
  std::optional<double> weight_decay = {};       // the optimizer's row has its default, and if it is decoupled or L2
  double clip = 1;                               // largest global norm of the gradient; 0: no clipping
  double clip_gates = 0;             // largest norm of the gradients of gpas' gates, before `clip`; 0: no limit
  double clip_value = 0;             // largest entry of the gradient; 0: no clipping
  int random_crop = 0;               // images: largest shift in pixels (io/data/augment.h)
  bool random_flip = false;          // images: mirrors half of them
  double mixup = 0;                  // images: alpha of the mixing of two of them (io/data/augment.h); 0: none
  double label_smoothing = 0;        // share of a target's weight in the training loss that all classes have alike
  double loss_l2 = 0;                // L2 as a term of the loss: its gradient is clipped with the rest
  bool decay_matrices_only = false;  // vectors (biases, gains, layer scales, a class token) are not decayed
  std::string no_decay = {};         // nor parameters of these names: patterns (core/system/name_pattern.h), by commas
  int accumulate = 1;                // parts of equal size that a batch is differentiated in
  double ema = 0;     // decay of an exponential moving average of the weights, compared beside them; 0: none
  int resume_at = 0;  // after so many steps every form's model and optimizer are made anew from their states; 0: never
  int ranks = 1;      // that train every form together, each its rows of a batch (distributed/); the reference has one
  bool whole_parts =
      false;     // with ranks: each of the `accumulate` parts is one rank's, and all are added in their order
  int zero = 0;  // what ranks share: 1 the optimizer's state, 2 gradients, too, 3 parameters, too
  std::optional<int> steps = {};  // 200 in f64, 50 in f32 where not set
  int batch = 64;

  DType dtype = DType::f64;
  Device device = kCpu;  // of parameters and batches
  uint64_t seed = 1;
  int threads = 0;  // 0: all that the machine has

  GradientLimits limits() const { return {.l2 = loss_l2, .value = clip_value, .gates = clip_gates, .norm = clip}; }
  double held_out() const { return test_data.empty() ? test_share : 0; }  // share of `data` that no step trains on
  int step_count() const { return steps.value_or(dtype == DType::f64 ? 200 : 50); }
  static int default_warmup(int steps) { return std::min(20, steps); }
  int warmup_steps() const { return warmup ? warmup->of(step_count()) : default_warmup(step_count()); }
  double decay() const { return weight_decay.value_or(optimizer->weight_decay); }
  // Cuts a warm-up that is longer than the training. The program refuses it; checkpoints of older versions may have it.
  optim::Schedule rates() const {
    return {.peak = lr,
            .warmup = std::min(warmup_steps(), step_count()),
            .steps = step_count(),
            .decay = schedule,
            .floor = min_lr};
  }
};

}  // namespace isonorm::training
