// Vision Transformer (Dosovitskiy et al., 2010.11929) as in 2305.14858: pre-normalized, class token or mean pooling,
// norm before the head.
#pragma once

#include "nn/transformer.h"

namespace isonorm::nn {

struct VitOptions {
  int64_t image = 28;  // height and width
  int64_t channels = 1;
  int64_t patch = 7;
  int64_t classes = 10;
  bool mean_pool = false;     // the head reads the mean of the tokens instead of a class token
  bool cls_position = false;  // with learned positions: the class token has one, too, the first (2010.11929)
  TransformerOptions transformer;
};

// images [n, image, image, channels] -> logits [n, classes] in the parameters' dtype. Parameters: patch (Linear of
// patches, entries ordered by row, column, channel), position [patches, d] if positions are learned (with cls_position
// one row more), cls [d] unless mean_pool (rotary embeddings count it as the first token), blocks, norm, head.
class Vit : public Module {
 public:
  explicit Vit(const VitOptions& options);

  const VitOptions options;

 protected:
  Tensor forward(const Tensor& images) override;

 private:
  Linear& patch_;
  Parameter &position_, &cls_;  // undefined without learned positions; undefined with mean_pool
  TransformerStack& blocks_;
  Connection& norm_;
  Linear& head_;
};

// The sizes of 2305.14858: "tiny", "small", "base", "large", "huge", "giant", "22b" on 224 x 224 images of 1000
// classes. Throws on another name.
VitOptions vit_preset(std::string_view name);

}  // namespace isonorm::nn
