#include "equivalence/probes/regime.h"

namespace isonorm::equivalence {
namespace {

constexpr Regime kRegimes[] = {
    {"dropout 0.2", "gpt2", [](training::TrainingOptions& o) { o.model.transformer().branch.dropout = 0.2; }},
    {"stochastic depth 0.3", "vit1",
     [](training::TrainingOptions& o) { o.model.transformer().branch.stochastic_depth = 0.3; }},
    {"layer scale 0.5", "vit6", [](training::TrainingOptions& o) { o.model.transformer().branch.layer_scale = 0.5; }},
    {"decay of matrices alone, 0.1", "gpt7",
     [](training::TrainingOptions& o) { o.decay_matrices_only = true, o.weight_decay = 0.1; }},
    {"batches in two parts", "gpt8", [](training::TrainingOptions& o) { o.accumulate = 2; }},
    {"average of the weights, 0.9", "vit4", [](training::TrainingOptions& o) { o.ema = 0.9; }},
    {"forms resumed after step 10", "gpt10", [](training::TrainingOptions& o) { o.resume_at = 10; }},
};

}  // namespace

std::span<const Regime> regimes() { return kRegimes; }

}  // namespace isonorm::equivalence
