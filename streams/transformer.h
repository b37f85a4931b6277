// The library's models on residual streams.
//
//   nn::Gpt model = streams::make<nn::Gpt>({.vocab = 96, .context = 128}, {.form = Form::crms_norm});
#pragma once

#include <type_traits>

#include "nn/encoder_decoder.h"
#include "nn/gpt.h"
#include "nn/vit.h"
#include "streams/parametrize.h"

namespace isonorm::streams {

// The parts of a Transformer that touch its stream, by their paths.
struct TransformerParts {
  struct Stack {
    std::string blocks;  // path of an nn::TransformerStack; empty: the model itself is one
    int64_t depth;
    std::string encoder_norm = {};  // decoders: the norm of the rows that cross-attention reads
  };
  std::vector<std::string> tables;  // the writers that make the embeddings
  std::vector<Stack> stacks;
  std::vector<std::pair<std::string, std::string>> heads;  // (head, norm): linear maps that read through a norm
};

// The layout of a model made of these parts, and the layouts of the library's own models.
Layout layout_of(const nn::TransformerOptions& options, const TransformerParts& parts);
Layout layout_of(const nn::Gpt& model);
Layout layout_of(const nn::Vit& model);
Layout layout_of(const nn::EncoderDecoder& model);

// Makes a model from its options and puts it on a stream. M is a module with public `options` and, in its namespace, a
// layout_of() with a width. If the options have a TransformerOptions `transformer`, its norms become norm_of(form).
// Throws if they were neither LayerNorm nor norm_of(form), and as M and parametrize().
template <class M> M make(std::remove_const_t<decltype(M::options)> options, const StreamOptions& on = {}) {
  if constexpr (requires { options.transformer; }) {
    const NormKind norm = options.transformer.norm;
    check(norm == NormKind::layer || norm == norm_of(on.form), "make: the options have the norm ", name_of(norm),
          ", expected layer, or ", name_of(norm_of(on.form)), " for the form ", name_of(on.form));
    options.transformer.norm = norm_of(on.form);
  }
  M model(options);
  const Layout layout = layout_of(model);
  parametrize(model, layout, Stream(on, layout.width()));
  return model;
}

}  // namespace isonorm::streams
