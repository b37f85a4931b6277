// Text generation with a language model.
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
  int64_t top_k = 0;              // choose among the k most likely ids (Fan et al., 1805.04833); 0: among all
  double top_p = 1;               // among the fewest ids with this total probability (Holtzman et al., 1904.09751)
  double min_p = 0;               // among ids with this part of the largest probability (Nguyen et al., 2407.01082)
  double repetition_penalty = 1;  // for ids that occurred before: a logit above 0 is divided by it, any other
                                  // one is multiplied (Keskar et al., 1909.05858)

  void check() const;  // throws naming the option that is out of range
};

// The logits leave no choice: one is NaN, or the largest is infinite.
class NotFinite : public Error {
 public:
  explicit NotFinite(const std::string& line) : Error(ErrorKind::invalid, line, __FILE__, __LINE__) {}
};

// Chooses the next id from logits [vocab]; `seen` are the ids before it. The options that narrow the choice are applied
// in the order of GenerateOptions. Draws one random number, or none if the temperature is 0. Throws NotFinite if a
// logit is NaN or if the largest one, after the penalty, is infinite. Throws Error if a penalised id of `seen` is not
// in the vocabulary.
int64_t choose(std::span<const double> logits, const GenerateOptions& options, std::span<const int64_t> seen,
               Generator& generator);

// Called with the ids of each step, one per row. Returns false to stop.
using OnIds = std::function<bool(std::span<const int64_t> ids)>;

// Continues `prompt` (i64 [time] or [rows, time], on any device). Returns each row with its new ids, on the prompt's
// device. Generation ends after `length` ids, or when `on_ids` returns false. The model sees the last `context` ids, in
// evaluation mode (nn/modes.h). Throws on an empty prompt and as GenerateOptions::check().
Tensor generate(Gpt& model, const Tensor& prompt, const GenerateOptions& options,
                Generator& generator = default_generator(), const OnIds& on_ids = {});

}  // namespace isonorm::nn
