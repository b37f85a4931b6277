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

// Where the parts of a Transformer hang on its stream, by their paths.
struct TransformerParts {
  struct Stack {
    std::string blocks;  // of nn::TransformerStack; empty: of the one block that is the model
    int64_t depth;
    std::string encoder_norm = {};  // of a decoder: of the rows that it attends to
  };
  std::vector<std::string> tables;  // what the embeddings are made of
  std::vector<Stack> stacks;
  std::vector<std::pair<std::string, std::string>> heads;  // linear maps, and the norms that they read through
};

// The layouts of models that are made of such parts, and of the library's own.
Layout layout_of(const nn::TransformerOptions& options, const TransformerParts& parts);
Layout layout_of(const nn::Gpt& model);
Layout layout_of(const nn::Vit& model);
Layout layout_of(const nn::EncoderDecoder& model);

// The model of these options on a stream. M: a module that is made of its public `options`, and has a layout_of() with a
// width in its namespace. Where the options have a TransformerOptions `transformer`, its norms are those of the form
// (norm_of()). Throws as M and parametrize().
template <class M> M make(std::remove_const_t<decltype(M::options)> options, const StreamOptions& on = {}) {
  if constexpr (requires { options.transformer; }) {
    const NormKind norm = options.transformer.norm;
    check(norm == NormKind::layer || norm == norm_of(on.form), "make: the options' norms are ", name_of(norm),
          ", those of ", name_of(on.form), ' ', name_of(norm_of(on.form)));
    options.transformer.norm = norm_of(on.form);
  }
  M model(options);
  const Layout layout = layout_of(model);
  parametrize(model, layout, Stream(on, layout.width()));
  return model;
}

}  // namespace isonorm::streams
