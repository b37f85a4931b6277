// The options of the models by name: the one list that writes them into files and reads them back.
#pragma once

#include "nn/gpt.h"
#include "nn/vit.h"

namespace isonorm::training {

// Calls f(name, member) for every option. The bindings must name every member: one more option does not compile until
// it stands here too.
template <class F> void visit_options(nn::TransformerOptions& o, F&& f) {
  auto& [width, depth, heads, head_width, mlp_width, activation, positions, rotary_base, causal, affine, bias, eps,
         final_norm, branch, centre_readers, stream, storage, residual] = o;
  f("width", width), f("depth", depth), f("heads", heads), f("head_width", head_width), f("mlp_width", mlp_width);
  f("activation", activation), f("positions", positions), f("rotary_base", rotary_base), f("causal", causal);
  f("affine", affine), f("bias", bias), f("eps", eps), f("final_norm", final_norm);
  f("centre_readers", centre_readers), f("stream", stream), f("storage", storage), f("residual", residual);
  auto& [dropout, stochastic_depth, layer_scale, recentring] = branch;
  f("dropout", dropout), f("stochastic_depth", stochastic_depth), f("layer_scale", layer_scale);
  f("recentring", recentring);
}
template <class F> void visit_options(nn::GptOptions& o, F&& f) {
  auto& [vocab, context, tied, transformer] = o;
  f("vocab", vocab), f("context", context), f("tied", tied);
  visit_options(transformer, f);
}
template <class F> void visit_options(nn::VitOptions& o, F&& f) {
  auto& [image, channels, patch, classes, mean_pool, transformer] = o;
  f("image", image), f("channels", channels), f("patch", patch), f("classes", classes), f("mean_pool", mean_pool);
  visit_options(transformer, f);
}

// Options that came after files were written: a file without the entry means the default.
inline constexpr std::string_view kLaterOptions[] = {"residual"};

// The names of an enumeration's values, in the order of the values.
template <class E> struct ValueNames;
template <> struct ValueNames<nn::Activation> { static constexpr const auto& names = nn::kActivationNames; };
template <> struct ValueNames<nn::Positions> { static constexpr const auto& names = nn::kPositionsNames; };
template <> struct ValueNames<nn::Recentring> {
  static constexpr const char* names[] = {"last", "first", "first_and_last"};
};
template <> struct ValueNames<nn::StreamForm> {
  static constexpr const char* names[] = {"layer_norm", "rms_norm", "crms_norm", "crms_isometric", "none"};
};
template <> struct ValueNames<nn::StreamStorage> { static constexpr const char* names[] = {"raw", "mapped"}; };

}  // namespace isonorm::training
