// The models that benchmarks/step times; benchmarks/torch_step.py has the same table.
#pragma once

#include <cstdint>
#include <string_view>

namespace isonorm::bench {

struct Case {
  std::string_view name;
  int64_t image, channels, patch, classes;  // ViT; 0 in a GPT
  int64_t vocab, context;                   // GPT; 0 in a ViT
  int64_t width, heads, depth, batch;

  bool is_gpt() const { return vocab > 0; }
  int64_t patches() const { return (image / patch) * (image / patch); }
  int64_t length() const {
    return is_gpt() ? context : patches() + 1;
  }  // rows of one sample: the class token comes first
};

inline constexpr Case kCases[] = {
    {.name = "vit_fmnist",
     .image = 28,
     .channels = 1,
     .patch = 4,
     .classes = 10,
     .vocab = 0,
     .context = 0,
     .width = 128,
     .heads = 4,
     .depth = 6,
     .batch = 128},
    {.name = "vit_tiny",
     .image = 224,
     .channels = 3,
     .patch = 16,
     .classes = 1000,
     .vocab = 0,
     .context = 0,
     .width = 192,
     .heads = 3,
     .depth = 12,
     .batch = 8},
    {.name = "gpt_small",
     .image = 0,
     .channels = 0,
     .patch = 0,
     .classes = 0,
     .vocab = 8192,
     .context = 256,
     .width = 384,
     .heads = 6,
     .depth = 6,
     .batch = 8},
};

}  // namespace isonorm::bench
