// Internal: Preprocessor, how pictures become the inputs of a model, and the hub's preprocessor_config.json.
#pragma once

#include <string>
#include <string_view>

#include "io/data/loader.h"
#include "io/data/picture.h"
#include "training/spec/data_spec.h"

namespace isonorm::training {

struct Preprocessor {
  data::PixelScale scale = {};
  data::PictureFit fit = {};

  // A preprocessor_config.json for images of this side and number of channels, which transformers' AutoImageProcessor
  // reads. On a square picture both compute the same numbers, up to the rounding of pixels to 8 bits.
  std::string text(int64_t side, int64_t channels) const;

  // Reads such a file for a model with images of this side and number of channels. A missing key has
  // ViTImageProcessor's default if the file names this class or none; other classes must have the key. Throws, naming
  // the key, if the images have another side, or if the file asks for something that is not supported: only BILINEAR
  // resizing is.
  static Preprocessor read(std::string_view text, int64_t side, int64_t channels);
};

// Reads the preprocessor in a model's spec. Returns the default if the spec has none. side, channels: the shape of the
// model's images.
Preprocessor preprocessor_of(const DataSpec& spec, int64_t side, int64_t channels);

}  // namespace isonorm::training
