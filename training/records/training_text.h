// The text and the document of a training.
#pragma once

#include <cmath>
#include <optional>
#include <string>

#include "reports/result.h"
#include "training/records/training_result.h"

namespace isonorm::training {

// "test loss 0.3521, test accuracy 87.12 % (8712 of 10000 images)"; for a language model "held-out loss 0.5000,
// perplexity 1.649, test accuracy 87.10 % (871 of 1000 tokens)".
std::string evaluation_text(const Evaluation& e, Input input);

// An evaluation on data of this kind, as programs read it.
struct EvaluationOn : Evaluation {
  Input input = Input::text;
};

// T: EvaluationOn, or a struct that is one and has more fields.
template <class T> reports::Fields<T> evaluation_fields() {
  return reports::Fields<T>()
      .add("loss", &EvaluationOn::loss, "mean cross-entropy of the predictions")
      .add(
          "perplexity",
          [](const EvaluationOn& p) {
            return p.input == Input::images ? std::nullopt : std::optional(std::exp(p.loss));
          },
          "exp(loss); null: the data are images")
      .add(
          "accuracy",
          [](const EvaluationOn& p) { return p.predictions > 0 ? std::optional(p.accuracy()) : std::nullopt; },
          "right / predictions; null: there are no predictions")
      .add("right", &EvaluationOn::right, "predictions that are right")
      .add("predictions", &EvaluationOn::predictions, "images, or tokens, that were predicted");
}

// Loss, learning rate and gradient norm of every step.
reports::Fields<TrainingCourse> course_fields();

// The JSON of document_of(TrainingResult).
const reports::Description& training_description();

// "rms_norm, 51466 parameters, 200 steps: test loss 0.3521, ..."; curves of loss, learning rate, gradient norm and
// accuracy, including the steps in `earlier`; evaluations.
reports::Document document_of(const TrainingResult& training);

}  // namespace isonorm::training
