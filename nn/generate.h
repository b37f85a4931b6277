// Texts that a language model continues.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "core/error.h"
#include "core/random.h"
#include "nn/gpt.h"

namespace isonorm::nn {

struct GenerateOptions {
  int64_t length = 100;           // ids to add
  double temperature = 1;         // the logits are divided by it; 0: always the most likely id
  int64_t top_k = 0;              // choose among the k most likely (Fan et al., 1805.04833); 0: among all
  double top_p = 1;               // among the fewest that have this probability together (Holtzman et al., 1904.09751)
  double min_p = 0;               // among those with this part of the largest probability (Nguyen et al., 2407.01082)
  double repetition_penalty = 1;  // of ids that are there already: a logit above 0 is divided by it, another one is
                                  // multiplied (Keskar et al., 1909.05858)

  void check() const;  // throws naming the option that is out of range
};

// The logits leave no choice: one is NaN, or the largest is infinite.
class NotFinite : public Error {
 public:
  explicit NotFinite(const std::string& line) : Error(ErrorKind::invalid, line, __FILE__, __LINE__) {}
};

// Chooses the next id from logits [vocab]; `seen` are the ids before it. The options that narrow the choice act in
// their order. Draws once from the generator, and not at all if the temperature is 0. Throws NotFinite if a logit is
// NaN or if the largest one, after the penalty, is infinite. Throws Error if a penalised id of `seen` is not in the
// vocabulary.
int64_t choose(std::span<const double> logits, const GenerateOptions& options, std::span<const int64_t> seen,
               Generator& generator);

// Is given the ids of a step, one of each row, and says whether to go on.
using OnIds = std::function<bool(std::span<const int64_t> ids)>;

// Continues `prompt` (i64 [time] or [rows, time], on any device). Returns each row with its new ids, on the prompt's
// device. Generation ends after `length` ids, or when `on_ids` returns false. The model sees the last `context` ids, in
// evaluation mode (nn/evaluation_mode.h). Throws on an empty prompt and as GenerateOptions::check().
Tensor generate(Gpt& model, const Tensor& prompt, const GenerateOptions& options,
                Generator& generator = default_generator(), const OnIds& on_ids = {});

}  // namespace isonorm::nn
