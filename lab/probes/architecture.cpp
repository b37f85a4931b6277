#include "lab/probes/architecture.h"

#include "equivalence/lockstep/made_examples.h"
#include "isonorm.h"
#include "streams/parametrize.h"
#include "training/from_outside.h"
#include "training/options/rows.h"

namespace isonorm::equivalence {
namespace {

using A = nn::Activation;
using P = nn::Positions;
constexpr const training::ModelRow *kGpt = &training::kGpt, *kVit = &training::kVit;
constexpr bool kTied = true, kUntied = false, kMean = true, kClass = false;
constexpr bool kAffine = true, kPlain = false, kBias = true, kNoBias = false;

//   name, model, width, depth, heads, head width, MLP width, activation, positions, output, norms, biases
// clang-format off
constexpr Architecture kArchitectures[] = {
    {"gpt1", kGpt, 12, 1, 1, 0, 20, A::relu, P::rotary, kUntied, kPlain, kBias},
    {"gpt2", kGpt, 24, 2, 3, 0, 48, A::gelu, P::learned, kUntied, kPlain, kBias},
    {"gpt3", kGpt, 36, 2, 4, 0, 40, A::swiglu, P::learned, kUntied, kAffine, kNoBias},
    {"gpt4", kGpt, 20, 2, 2, 0, 24, A::swiglu, P::rotary, kTied, kPlain, kNoBias},
    {"gpt5", kGpt, 7, 2, 1, 6, 11, A::swiglu, P::rotary, kUntied, kAffine, kNoBias},
    {"gpt6", kGpt, 15, 1, 3, 0, 20, A::relu, P::learned, kTied, kPlain, kBias},
    {"gpt7", kGpt, 33, 1, 3, 4, 32, A::gelu, P::rotary, kUntied, kAffine, kBias},
    {"gpt8", kGpt, 16, 2, 1, 0, 32, A::gelu, P::learned, kUntied, kPlain, kNoBias},
    {"gpt9", kGpt, 8, 1, 1, 0, 16, A::relu, P::learned, kTied, kAffine, kBias},
    {"gpt10", kGpt, 32, 1, 1, 0, 24, A::swiglu, P::rotary, kTied, kPlain, kBias},
    {"gpt11", kGpt, 16, 1, 2, 0, 12, A::relu, P::rotary, kTied, kAffine, kBias},
    {"vit1", kVit, 10, 2, 1, 0, 24, A::gelu, P::learned, kClass, kPlain, kBias},
    {"vit2", kVit, 20, 1, 1, 12, 24, A::swiglu, P::learned, kClass, kAffine, kBias},
    {"vit3", kVit, 48, 1, 4, 0, 48, A::gelu, P::learned, kClass, kAffine, kBias},
    {"vit4", kVit, 14, 1, 2, 0, 16, A::relu, P::learned, kMean, kPlain, kBias},
    {"vit5", kVit, 9, 2, 1, 0, 24, A::gelu, P::learned, kMean, kAffine, kBias},
    {"vit6", kVit, 21, 2, 1, 8, 32, A::gelu, P::rotary, kMean, kPlain, kBias},
    {"vit7", kVit, 15, 1, 2, 6, 16, A::relu, P::rotary, kClass, kAffine, kNoBias},
    {"vit8", kVit, 47, 1, 5, 4, 24, A::swiglu, P::learned, kMean, kAffine, kBias},
    {"vit9", kVit, 32, 2, 1, 0, 32, A::gelu, P::rotary, kClass, kPlain, kNoBias},
    {"vit10", kVit, 8, 2, 1, 0, 16, A::gelu, P::rotary, kMean, kAffine, kBias},
    {"vit11", kVit, 16, 1, 4, 0, 16, A::relu, P::rotary, kClass, kPlain, kBias},
};
// clang-format on

const char* activation_text(nn::Activation a) {
  constexpr const char* names[] = {"GELU", "GELU (tanh)", "ReLU", "SiLU", "SwiGLU", "QuickGELU"};
  return names[static_cast<size_t>(a)];
}

const char* output_text(const Architecture& a) {
  if (has(*a.model, "tied")) return a.other_output ? "tied" : "untied";
  return a.other_output ? "mean pooling" : "class token";
}

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

const Architecture& architecture(std::string_view name) {
  return training::row_named(kArchitectures, name, "architecture");
}

bool from_outside(const Architecture& a) {
  return !listed(*a.model) || (a.optimizer && !listed(*a.optimizer)) || !training::listed(a.connection);
}

std::string name_of(const Architecture& a) { return text(a.name, from_outside(a) ? training::kFromOutside : ""); }

std::string description(const Architecture& a) {
  const auto own = [](const char* what, const auto& row) {
    return training::listed(row) ? std::string() : text(", ", what, " ", training::name_and_origin(row));
  };
  return text("width ", a.width, ", ", a.heads, a.heads == 1 ? " head, " : " heads, ", activation_text(a.activation),
              ", ", name_of(a.positions), ", ", output_text(a), ", ", a.affine ? "affine" : "plain",
              a.bias ? "" : ", no biases", own("model", *a.model), a.optimizer ? own("optimizer", *a.optimizer) : "",
              own("connections", a.connection));
}

training::TrainingOptions training_options(const Architecture& a, DType dtype, uint64_t seed) {
  training::TrainingOptions o;
  o.model = training::ModelOptions(*a.model, {.width = a.width,
                                              .depth = a.depth,
                                              .heads = a.heads,
                                              .head_width = a.head_width,
                                              .mlp_width = a.mlp,
                                              .activation = a.activation,
                                              .positions = a.positions,
                                              .affine = a.affine,
                                              .bias = a.bias,
                                              .connection = a.connection});
  o.model.fit({.image = 6, .channels = 2, .classes = 5, .vocab = 11});
  o.model.fit({{"patch", 3}, {"context", 6}, {"tied", a.tied()}, {"head_bias", true}, {"mean_pool", a.other_output}});
  if (a.optimizer) o.optimizer = a.optimizer;
  o.warmup = 0;
  o.batch = 4;
  o.dtype = dtype;
  o.device = a.device;
  o.seed = seed;
  return o;
}

std::unique_ptr<nn::Module> initial_model(const training::TrainingOptions& o) {
  manual_seed(o.seed);
  auto model = build_model(o, {.form = streams::Form::layer_norm});
  NoGrad no_grad;
  for (const streams::NamedParameter& p : streams::named_parameters(*model))
    if (p.role != streams::Role::neutral) copy_into(p.tensor, detach(p.tensor) + kRawMean);
  return model;
}

}  // namespace isonorm::equivalence
