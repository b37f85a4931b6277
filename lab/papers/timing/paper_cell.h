// Internal: the cells of the tables of times in 2305.14858: their models, costs and published figures.
#pragma once

#include <string>
#include <vector>

#include "nn/transformer.h"

namespace isonorm::papers {

// One model of the paper (nn::vit_preset, nn::gpt_preset) with a batch size, for a forward or a training step.
struct PaperCell {
  bool image;
  const char* size;
  bool training;
  int64_t batch, length;  // batch: images or texts; length: ids per text

  std::string name() const;                    // "ViT tiny training, 4", "GPT small, 1 x 128"
  nn::TransformerOptions transformer() const;  // complete; heads and MLP have the paper's width
  int64_t tokens() const;                      // rows of the stream
  double weights() const;                      // weights applied to every row: the blocks and a GPT's head
  double operations() const;  // floating-point operations of matrix products and of attention (causal: half)
  // Approximate memory of `models` models: their parameters, gradients and copies, and the activations of one model.
  double bytes(int models) const;
  // Times of Pre-RMSNorm and Pre-CRMSNorm on GPUs, divided by Pre-LN's, as in "0.977 / 0.983"; empty if not published.
  std::string published() const;
};

// Ordered by size. full: all cells of the paper, else only those with small batches.
std::vector<PaperCell> paper_cells(bool full);

}  // namespace isonorm::papers
