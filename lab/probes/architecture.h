// The architectures of the certificate, as data: small Transformers that differ in many ways.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "training/model_options.h"
#include "training/training_options.h"

namespace isonorm::equivalence {

struct Architecture {
  const char* name;
  const training::ModelRow* model;
  int64_t width, depth, heads, head_width, mlp;  // head_width 0: width / heads
  nn::Activation activation;
  nn::Positions positions;
  bool other_output;  // gpt: a tied head; vit: mean pooling instead of a class token
  bool affine;
  bool bias;

  // These, and the model, may be a program's own.
  const training::OptimizerRow* optimizer = nullptr;  // null: adamw
  nn::Arrangement connection = nn::kPreLn;

  Device device = kCpu;  // of trainings and points

  bool tied() const { return other_output && has(*model, "tied"); }
};

// Width 2: a normalized row is (s, -s) with |s| near 1, so only its sign is left and its gradient is almost 0. Not in
// architectures().
inline constexpr Architecture kWidth2 = {
    "width 2", &training::kGpt, 2, 1, 1, 2, 8, nn::Activation::gelu, nn::Positions::learned, false, false, true};

// At most 2 blocks and width 48.
std::span<const Architecture> architectures();
// Finds the architecture with this name. If there is none, throws an error that lists all names.
const Architecture& architecture(std::string_view name);

// True if the model, optimizer or connections are a program's own.
bool from_outside(const Architecture& a);
// "gpt2", "mine (from outside)".
std::string name_of(const Architecture& a);

// "width 24, 3 heads, SwiGLU, rotary, tied, plain, no biases".
std::string description(const Architecture& a);

// The options of its trainings: its optimizer at a constant rate of 1e-3, weight decay 0.01, clipping at 1.
training::TrainingOptions training_options(const Architecture& a, DType dtype, uint64_t seed);

// The Pre-LN model with initial parameters drawn from options.seed. Writers and readers are moved by 0.15, so that
// projections have something to remove.
std::unique_ptr<nn::Module> initial_model(const training::TrainingOptions& options);

}  // namespace isonorm::equivalence
