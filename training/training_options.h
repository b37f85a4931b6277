// TrainingOptions: the model, the data, and how it is trained, with defaults. Plain data.
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
  int64_t token_vocab = 0;     // size of the vocabulary of token ids; 0: the tokens are the bytes of a text
  int64_t row_length = 0;      // tokens in a row of a batch, below the model's context; 0: the context
  DataSpec spec = {};          // belongs to the initial weights; the data complete it
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
  Tuning tuning = {};                            // the optimizer's settings; unset: the defaults in its row
  std::optional<double> weight_decay =
      {};                      // unset: the default in the optimizer's row, which also tells if it is decoupled or L2
  double clip = 1;             // largest global norm of the gradient; 0: no clipping
  double clip_gates = 0;       // largest norm of the gradients of GPAS gates, applied before `clip`; 0: no limit
  double clip_value = 0;       // largest entry of the gradient; 0: no clipping
  int random_crop = 0;         // images: largest shift in pixels (io/data/augment.h)
  bool random_flip = false;    // images: mirrors each with probability 1/2
  double mixup = 0;            // images: alpha of mixup (io/data/augment.h); 0: none
  double label_smoothing = 0;  // share of a target's probability that is spread over all classes in the training loss
  double loss_l2 = 0;          // L2 as a term of the loss: its gradient is clipped with the rest
  bool decay_matrices_only = false;  // no weight decay for vectors (biases, gains, layer scales, class token)
  std::string no_decay = {};         // nor for these parameters: patterns (core/system/name_pattern.h), by commas
  int accumulate = 1;                // gradient accumulation: number of micro-batches of equal size per batch
  double ema = 0;     // decay of an exponential moving average of the weights, which is compared, too; 0: none
  int resume_at = 0;  // step after which models and optimizers are rebuilt from their saved states; 0: never
  int ranks = 1;      // data-parallel ranks per form (distributed/); the reference always has one
  bool rank_invariant = false;    // the same bits on any number of ranks (StepOptions)
  int zero = 0;                   // ZeRO: shards the optimizer's state (1), also gradients (2), also parameters (3)
  std::optional<int> steps = {};  // unset: 200 in f64, 50 in f32
  int batch = 64;

  DType dtype = DType::f64;
  Device device = kCpu;  // of parameters and batches
  uint64_t seed = 1;
  int threads = 0;  // 0: all cores of the machine

  GradientLimits limits() const { return {.l2 = loss_l2, .value = clip_value, .gates = clip_gates, .norm = clip}; }
  double held_out() const { return test_data.empty() ? test_share : 0; }  // share of `data` that is not trained on
  int step_count() const { return steps.value_or(dtype == DType::f64 ? 200 : 50); }
  static int default_warmup(int steps) { return std::min(20, steps); }
  int warmup_steps() const { return warmup ? warmup->of(step_count()) : default_warmup(step_count()); }
  double decay() const { return weight_decay.value_or(optimizer->weight_decay); }
  // Shortens a warm-up that is longer than the training. The program refuses one, but checkpoints of older versions may
  // have it.
  optim::Schedule rates() const {
    return {.peak = lr,
            .warmup = std::min(warmup_steps(), step_count()),
            .steps = step_count(),
            .decay = schedule,
            .floor = min_lr};
  }
};

}  // namespace isonorm::training
