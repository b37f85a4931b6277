// What is trained and how, with the defaults. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "data/pairs.h"
#include "nn/transformer.h"
#include "optim/schedule.h"
#include "training/optimizers.h"
#include "training/step.h"

namespace isonorm::training {

// The models by name, in the order in which the command line lists them. Each has a row of its own,
// training/models/<name>.cpp; model_row.h says what it holds.
struct ModelRow;
extern const ModelRow kVit, kGpt, kTranslator;
inline constexpr const ModelRow* kModels[] = {&kVit, &kGpt, &kTranslator};
// Where a name or a module is looked up: kModels, or a list with rows of a program's own.
using ModelList = std::span<const ModelRow* const>;

struct TrainingOptions {
  const ModelRow* model = &kVit;  // never null
  std::string data;  // images: folder of the four idx.gz files (empty: where the Debian package puts them) or of
                     // CIFAR-10's .bin files; gpt: a text file, empty: see `vocab`; translator: folder of source.txt
                     // and target.txt, empty: see `task`

  const OptimizerRow* optimizer = &training::optimizer("adamw");  // never null
  double lr = 1e-3;
  int warmup = 20;                               // steps of linear warm-up, whose first rate is not 0
  optim::Decay schedule = optim::Decay::cosine;  // of the rate behind the warm-up
  std::optional<double> weight_decay = {};       // decoupled or L2, and by default so much, as the optimizer's row says
  double clip = 1;                               // largest global norm of the gradient; 0: no clipping
  double clip_gates = 0;             // largest norm of the gradients of gpas' gates, before `clip`; 0: no limit
  double label_smoothing = 0;        // share of a target's weight in the training loss that all classes have alike
  double clip_value = 0;             // largest entry of the gradient; 0: no clipping
  double loss_l2 = 0;                // L2 as a term of the loss: its gradient is clipped with the rest
  bool decay_matrices_only = false;  // vectors (biases, gains, layer scales, a class token) are not decayed
  int accumulate = 1;                // parts of equal size that a batch is differentiated in
  double ema = 0;     // decay of an exponential moving average of the weights, compared beside them; 0: none
  int resume_at = 0;  // after so many steps every form's model and optimizer are made anew from their states; 0: never
  std::optional<int> steps = {};  // 200 in f64, 50 in f32 where not set
  int batch = 64;

  int64_t width = 64;
  int64_t depth = 4;
  int64_t heads = 4;
  int64_t mlp = 0;     // width of the MLP; 0: 4 width
  int64_t vocab = 13;  // without data: letters of a random text or of pairs; 0: sentences made from the seed
  data::Task task = data::Task::translate;  // translator without data: what pairs are of
  int64_t patch = 7;                        // vit: side of a patch in pixels
  int64_t context = 64;                     // gpt: length of a training row in characters
  bool affine = false;                      // norms with learned gain and bias
  bool norm_bias = true;                    // false: of affine norms the gain alone
  bool scaled_gains = false;                // gains of block l begin at 1/sqrt(l)
  int64_t head_width = 0;                   // 0: width / heads
  int64_t kv_heads = 0;                     // heads of keys and values; 0: heads
  nn::Activation activation = nn::Activation::gelu;
  nn::Positions positions = nn::Positions::learned;
  nn::Initialisation initialisation = nn::Initialisation::by_layer;
  bool bias = true;        // biases in the linear maps
  bool tied = false;       // gpt, translator: the head reads with the token table
  bool shared = false;     // translator: source and target have one table
  bool mean_pool = false;  // vit: pools the mean of the tokens instead of a class token's row
  bool final_norm = true;  // false: the head reads the bare stream
  nn::BranchOptions branch = {};
  nn::Arrangement connection = nn::kPreLn;  // listed ones (nn/residual/all.h), or a program's own

  nn::MixedPrecision precision = {};  // of a dtype f32; proofs and tables are of full precision

  DType dtype = DType::f64;
  Device device = kCpu;  // of parameters and batches
  double eps = 1e-5;     // of the norms
  uint64_t seed = 1;
  int threads = 0;  // 0: all that the machine has

  GradientLimits limits() const { return {.l2 = loss_l2, .value = clip_value, .gates = clip_gates, .norm = clip}; }
  int step_count() const { return steps.value_or(dtype == DType::f64 ? 200 : 50); }
  double decay() const { return weight_decay.value_or(optimizer->weight_decay); }
};

}  // namespace isonorm::training
