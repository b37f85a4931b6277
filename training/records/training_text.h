// The text and the document of a training.
#pragma once

#include <string>

#include "reports/document.h"
#include "training/records/training_result.h"

namespace isonorm::training {

// "test loss 0.3521, test accuracy 87.12 % (8712 of 10000 images)"; for a language model "held-out loss 0.5000,
// perplexity 1.649, test accuracy 87.10 % (871 of 1000 tokens)".
std::string evaluation_text(const Evaluation& e, Input input);

// "rms_norm, 51466 parameters, 200 steps: test loss 0.3521, ..."; curves of loss, learning rate, gradient norm and
// accuracy, including the steps in `earlier`; evaluations.
reports::Document document_of(const TrainingResult& training);

}  // namespace isonorm::training
