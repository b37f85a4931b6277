// Continues a text by a trained language model: `isonorm sample` is this function.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device.h"
#include "nn/generate.h"

namespace isonorm::training {

// The text becomes token ids by the tokenizer or the alphabet in the model's file, unless one of `tokenizer`, `data`
// and `are_ids` says how.
struct TextContinuation {
  std::string model;                   // a checkpoint of `isonorm train`, or a file that describes its model
  std::string prompt = {};             // at least one token
  std::string tokenizer = {};          // a tokenizer of the hub (io/tokenizers/tokenizer.h)
  std::string data = {};               // the text whose bytes the model was trained on
  bool are_ids = false;                // the texts are ids, "17 4 256"
  int64_t count = 1;                   // number of texts
  std::vector<std::string> stop = {};  // a text ends before any of these words
  bool ignore_eos = false;             // continues after the tokenizer's end token, which ends a text otherwise
  nn::GenerateOptions generate = {};
  uint64_t seed = 0;
  Device device = kCpu;
  // With count = 1: receives the prompt and the continuation while the continuation grows, in whole UTF-8 characters
  // and without the beginning of a stop word.
  std::function<void(std::string_view)> print = {};
  std::function<bool()> go_on = [] { return true; };  // called before a token is added to each text; false ends them
};

struct ContinuedTexts {
  std::vector<std::string> texts;  // with the prompt; without an unfinished UTF-8 character at the end
  int64_t tokens = 0;              // added to all texts
  double seconds = 0;              // spent on them
};

//   training::continue_text({.model = "gpt.ckpt", .prompt = "The norm"}).texts[0]
//
// Throws UsageError if options contradict each other, if the model's file does not say how a text becomes ids, or if
// the prompt is empty; Error if the file holds no language model or one of another vocabulary; Diverged if weights or
// logits are not finite.
ContinuedTexts continue_text(const TextContinuation& options);

}  // namespace isonorm::training
