#include "training/records/training_text.h"

#include <cmath>

#include "core/printed.h"
#include "training/from_outside.h"

namespace isonorm::training {

std::string evaluation_text(const Evaluation& e, Input input) {
  return text(input == Input::images ? printed("test loss %.4f", e.loss)
                                     : printed("held-out loss %.4f, perplexity %.3f", e.loss, std::exp(e.loss)),
              printed(", test accuracy %.2f %%", 100 * e.accuracy()), " (", e.right, " of ", e.predictions, " ",
              name_of(input), ")");
}

std::string summary_sentence(const TrainingResult& training) {
  const TrainingOptions& o = training.options;
  return text(o.connection == nn::kPreLn ? "" : text(name_and_origin(o.connection), ", "), training.form, ", ",
              training.parameters, " parameters, ", o.step_count(), " steps: ",
              training.evaluations.empty() ? "nothing to test on"
                                           : evaluation_text(training.evaluations.back(), o.model->input));
}

}  // namespace isonorm::training
