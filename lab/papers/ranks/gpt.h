// Internal: the GPT that the experiments with ranks train, f64 or f32, and its batches of random ids.
#pragma once

#include "isonorm.h"
#include "training/steps/step.h"

namespace isonorm::papers {

constexpr int64_t kRankRows = 8, kRankTime = 16, kRankVocab = 64;

inline nn::GptOptions rank_gpt(int64_t width, int64_t depth) {
  return {.vocab = kRankVocab,
          .context = kRankTime,
          .transformer = {.width = width, .depth = depth, .heads = 4, .affine = true}};
}

inline training::Examples rank_batch(uint64_t seed, int64_t step) {
  Generator random{seed, static_cast<uint64_t>(step + 1) << 32};
  const Tensor ids = randint(0, kRankVocab, {kRankRows, kRankTime + 1}, kCpu, random);
  return {narrow(ids, 1, 0, kRankTime).contiguous(), narrow(ids, 1, 1, kRankTime).contiguous()};
}

}  // namespace isonorm::papers
