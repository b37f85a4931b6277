// Internal: The cells of 2305.14858's tables of times: what is timed, what it takes, what the paper printed.
#pragma once

#include <string>
#include <vector>

#include "nn/transformer.h"

namespace isonorm::papers {

// A model of the paper (nn::vit_preset, nn::gpt_preset), of how many examples, in a forward or in a step of training.
struct PaperCell {
  bool image;
  const char* size;
  bool training;
  int64_t batch, length;  // images or texts; ids of a text

  std::string name() const;                    // "ViT tiny training, 4", "GPT small, 1 x 128"
  nn::TransformerOptions transformer() const;  // complete: heads and MLP are of the paper's width
  int64_t tokens() const;                      // rows of the stream
  double weights() const;                      // numbers that every row meets, of blocks and of a text's head
  double operations() const;  // floating-point ones, of products with weights and of attention (a text sees half)
  // About, of so many models: parameters, what is kept beside them, and the activations of one.
  double bytes(int models) const;
  // "0.977 / 0.983": Pre-RMSNorm's and Pre-CRMSNorm's time on GPUs divided by Pre-LN's, where the paper has such a cell.
  std::string published() const;
};

// In the order in which they grow; `full`: all of the paper's, else those of few examples.
std::vector<PaperCell> paper_cells(bool full);

}  // namespace isonorm::papers
