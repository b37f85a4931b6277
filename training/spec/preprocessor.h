// Internal: Preprocessor says how pictures become the inputs of a model, in the words of the hub's preprocessor_config.json.
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

  // A preprocessor_config.json for images of this side and number of channels; transformers' AutoImageProcessor reads it. A square
  // picture becomes the same numbers there and here, up to the rounding of pixels to 8 bits.
  std::string text(int64_t side, int64_t channels) const;

  // Reads such a file for a model with images of this side and number of channels. A missing key has the default of
  // ViTImageProcessor, if the file names this class or none; a file of another class must have the key. Throws, naming the key, if
  // the images are of another side, or if this program does not compute what the file asks for: it resizes by BILINEAR.
  static Preprocessor read(std::string_view text, int64_t side, int64_t channels);
};

// Reads the preprocessor in a model's spec. Returns the default if the spec has none. side, channels: the shape of the
// model's images.
Preprocessor preprocessor_of(const DataSpec& spec, int64_t side, int64_t channels);

}  // namespace isonorm::training
