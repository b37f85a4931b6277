// The models that benchmarks/step times. benchmarks/torch_step.py has the first three.
#pragma once

#include <cstdint>
#include <string_view>

namespace isonorm::bench {

struct Case {
  std::string_view name;
  int64_t image = 0, channels = 0, patch = 0, classes = 0;  // ViT; 0 in a GPT
  int64_t vocab = 0, context = 0;                           // GPT; 0 in a ViT
  bool gelu_tanh = false;                                   // tanh approximation of GELU, as in GPT-2
  bool tied = false;                                        // GPT: the head shares the token table's weight
  int64_t width, heads, depth;
  int64_t head_width = 0;  // 0: width / heads
  int64_t mlp = 0;         // width of the MLP; 0: 4 width
  int64_t batch;           // of a training step

  bool is_gpt() const { return vocab > 0; }
  int64_t patches() const { return (image / patch) * (image / patch); }
  // Rows per sample; in a ViT the class token comes first.
  int64_t length() const { return is_gpt() ? context : patches() + 1; }
};

// clang-format off
inline constexpr Case kCases[] = {
    {.name = "vit_fmnist", .image = 28, .channels = 1, .patch = 4, .classes = 10, .width = 128, .heads = 4, .depth = 6, .batch = 128},
    {.name = "vit_tiny", .image = 224, .channels = 3, .patch = 16, .classes = 1000, .width = 192, .heads = 3, .depth = 12, .batch = 8},
    {.name = "gpt_small", .vocab = 8192, .context = 256, .tied = true, .width = 384, .heads = 6, .depth = 6, .batch = 8},
    // The sizes of 2305.14858, and GPT-3's sizes with the sequence length of its figure 5.
    {.name = "vit_small", .image = 224, .channels = 3, .patch = 16, .classes = 1000, .width = 384, .heads = 6, .depth = 12, .batch = 4},
    {.name = "vit_base", .image = 224, .channels = 3, .patch = 16, .classes = 1000, .width = 768, .heads = 12, .depth = 12, .batch = 2},
    {.name = "vit_large", .image = 224, .channels = 3, .patch = 16, .classes = 1000, .width = 1024, .heads = 16, .depth = 24, .batch = 1},
    {.name = "vit_huge", .image = 224, .channels = 3, .patch = 14, .classes = 1000, .width = 1280, .heads = 16, .depth = 32, .batch = 1},
    {.name = "vit_giant", .image = 224, .channels = 3, .patch = 14, .classes = 1000, .width = 1664, .heads = 16, .depth = 48, .mlp = 8192, .batch = 1},
    {.name = "gpt3_small", .vocab = 50257, .context = 512, .width = 768, .heads = 12, .depth = 12, .batch = 1},
    {.name = "gpt3_medium", .vocab = 50257, .context = 512, .width = 1024, .heads = 16, .depth = 24, .batch = 1},
    {.name = "gpt3_large", .vocab = 50257, .context = 512, .width = 1536, .heads = 16, .depth = 24, .batch = 1},
    {.name = "gpt3_xl", .vocab = 50257, .context = 512, .width = 2048, .heads = 24, .depth = 24, .head_width = 128, .batch = 1},
    // GPT-2 124M with its own GELU and its vocabulary padded to a multiple of 128; then one whose step is small
    // compared with its kernel launches.
    {.name = "gpt2", .vocab = 50304, .context = 1024, .gelu_tanh = true, .tied = true, .width = 768, .heads = 12, .depth = 12, .batch = 32},
    {.name = "gpt2_short", .vocab = 50304, .context = 256, .gelu_tanh = true, .tied = true, .width = 768, .heads = 12, .depth = 12, .batch = 1},
    // To try the programs.
    {.name = "gpt_smoke", .vocab = 32, .context = 8, .tied = true, .width = 16, .heads = 2, .depth = 1, .batch = 2},
    {.name = "gpt_heads", .vocab = 64, .context = 192, .tied = true, .width = 128, .heads = 2, .depth = 2, .batch = 2},  // heads of 64
    {.name = "vit_smoke", .image = 8, .channels = 1, .patch = 4, .classes = 10, .width = 16, .heads = 2, .depth = 1, .batch = 2},
};
// clang-format on

}  // namespace isonorm::bench
