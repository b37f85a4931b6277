// Images for trainings of tests.
#pragma once

#include "tests/support/gzip.h"
#include "tests/support/temp_folder.h"

namespace isonorm {

// Writes a folder `images` with Fashion-MNIST's four files: `train` images to train on (at most 255) and 10 to test on.
inline void write_images(const TempFolder& f, int train = 40) {
  std::filesystem::create_directory(f / "images");
  for (const auto& [name, n] : {std::pair{"images/train", train}, {"images/t10k", 10}}) {
    std::vector<uint8_t> images = {0, 0, 8, 3, 0, 0, 0, static_cast<uint8_t>(n), 0, 0, 0, 28, 0, 0, 0, 28};
    std::vector<uint8_t> labels = {0, 0, 8, 1, 0, 0, 0, static_cast<uint8_t>(n)};
    for (int i = 0; i < n; ++i) {
      labels.push_back(static_cast<uint8_t>(i % 10));
      for (int p = 0; p < 28 * 28; ++p) images.push_back(static_cast<uint8_t>(p * (i % 10 + 1) + i));
    }
    write_bytes(f / (name + std::string("-images-idx3-ubyte.gz")), gzip(images));
    write_bytes(f / (name + std::string("-labels-idx1-ubyte.gz")), gzip(labels));
  }
}

}  // namespace isonorm
