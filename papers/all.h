// Internal: The experiments that experiment.cpp lists, each in the file of its name.
#pragma once

#include "papers/experiment.h"

namespace isonorm::papers {

// E13: which changes of weights and data a norm does not see (1910.07467, table 1), and how its gradients scale.
ExperimentResult invariance(const ExperimentOptions& options);

// E16: trainings of the forms against controls that differ by one ulp (2305.14858, figures 6 and 7).
ExperimentResult trajectories(const ExperimentOptions& options);

// The same of a ViT on Fashion-MNIST and a GPT on a made text at once, both of the figures; `full` is a larger scale.
ExperimentResult paper_curves(const ExperimentOptions& options);

// Times of the forms on the paper's models (2305.14858, tables 3 to 5), as far as a budget allows; `full` has a larger
// one. A verdict on times: no test asks for it.
ExperimentResult paper_speed(const ExperimentOptions& options);

// E14: times of norms by themselves, beside LayerNorm; `full` takes ten times as long. A verdict on times, too.
ExperimentResult norm_cost(const ExperimentOptions& options);

// E18: logits and gradients of a ViT and a GPT with random weights in every form (2305.14858, sections 3.1 to 3.3).
ExperimentResult conversion(const ExperimentOptions& options);

// Peri-LN, OLMo 2's order, hyper-connections, QK-norm, DyT and Derf: their RMSNorm forms, or that there is none (newer/nets.h).
ExperimentResult peri_ln_forms(const ExperimentOptions& options);
ExperimentResult olmo2_forms(const ExperimentOptions& options);
ExperimentResult hyper_connection_forms(const ExperimentOptions& options);
ExperimentResult qk_norm_forms(const ExperimentOptions& options);
ExperimentResult pointwise_forms(const ExperimentOptions& options);

// Norms of rows whose entries several ranks share: what each form has to add over the ranks, forward and backward.
ExperimentResult sharded_norms(const ExperimentOptions& options);
// A GPT that four ranks have parts of, trained beside the whole one; what a rank holds in the stages of ZeRO.
ExperimentResult tensor_parallel(const ExperimentOptions& options);
ExperimentResult zero_memory(const ExperimentOptions& options);

// How often rounding alone breaks the bound of criterion.h: Pre-LN moved by one ulp, some seeds against others. At
// least 24 seeds.
ExperimentResult controls(const ExperimentOptions& options);

// E1, E7, E3 with E17: gradients of the last block, of the first and of all at the initial weights, by connection
// (2002.04745, theorem 1; 2304.14802, section 3; 2203.00555, section 4).
ExperimentResult last_gradient(const ExperimentOptions& options);
ExperimentResult first_gradient(const ExperimentOptions& options);
ExperimentResult gradient_profile(const ExperimentOptions& options);

// E2 with E9, E8: the stream's size and its changes by block (2002.04745, lemma 2; 2502.05795; 2304.14802, section 2).
ExperimentResult stream_growth(const ExperimentOptions& options);
ExperimentResult collapse(const ExperimentOptions& options);

// E5 with E6: what one step of SGD moves, by depth (2203.00555, section 3; 2210.06423, section 3).
ExperimentResult bounded_update(const ExperimentOptions& options);

// E10: GPAS with and without its stop-gradient (2506.22049, section 3).
ExperimentResult stop_gradient(const ExperimentOptions& options);

// E4: Post-LN and Pre-LN with and without warm-up (2002.04745, section 3.2).
ExperimentResult warm_up(const ExperimentOptions& options);
// All connections on one task over depth, rate and warm-up; `full` is the larger scale.
ExperimentResult zoo(const ExperimentOptions& options);

// E17: perplexities of small language models by connection (2412.13795; 2502.05795; 2506.22049); `full` is larger.
ExperimentResult perplexity(const ExperimentOptions& options);

// E11 and E12: norms in a GRU, from weights around 0 and around 0.2 (1910.07467, sections 4 and 6).
ExperimentResult recurrent_norms(const ExperimentOptions& options);
ExperimentResult recurrent_centre(const ExperimentOptions& options);

// Norms in ConvPool-CNN-C on Fashion-MNIST: errors, and times of steps (1910.07467, table 8); `full` is a larger scale.
ExperimentResult image_norms(const ExperimentOptions& options);

// Norms in an encoder-decoder on made words: words wrong, and times of steps (1910.07467, section 6.1); `full` is larger.
ExperimentResult translator_norms(const ExperimentOptions& options);

// What mixed precision does to a loss curve (1905.12322), against f32 and f32 from other weights.
ExperimentResult precision(const ExperimentOptions& options);

}  // namespace isonorm::papers
