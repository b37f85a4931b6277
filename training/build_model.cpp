#include "training/build_model.h"

#include "nn/gpt.h"
#include "nn/vit.h"

namespace isonorm::training {
namespace {

nn::TransformerOptions transformer_options(const TrainingOptions& o, const nn::Stream& stream) {
  return {.width = o.width,
          .depth = o.depth,
          .heads = o.heads,
          .head_width = o.head_width,
          .mlp_width = o.mlp,
          .activation = o.activation,
          .positions = o.positions,
          .affine = o.affine,
          .bias = o.bias,
          .eps = o.eps,
          .final_norm = o.final_norm,
          .branch = o.branch,
          .stream = stream.form(),
          .storage = stream.storage(),
          .residual = o.residual};
}

}  // namespace

std::unique_ptr<nn::Module> build_model(const TrainingOptions& o, const ModelShape& shape, const nn::Stream& stream) {
  const nn::TransformerOptions t = transformer_options(o, stream);
  std::unique_ptr<nn::Module> model;
  if (o.model == ModelKind::vit)
    model = std::make_unique<nn::Vit>(nn::VitOptions{.image = shape.image,
                                                     .channels = shape.channels,
                                                     .patch = o.patch,
                                                     .classes = shape.classes,
                                                     .mean_pool = o.mean_pool,
                                                     .transformer = t});
  else
    model = std::make_unique<nn::Gpt>(
        nn::GptOptions{.vocab = shape.vocab, .context = o.context, .tied = o.tied, .transformer = t});
  model->to(o.dtype);
  return model;
}

}  // namespace isonorm::training
