// Any set of images that a training may name.
#pragma once

#include <string>
#include <vector>

#include "data/labelled_images.h"

namespace isonorm::data {

struct ImageSets {
  LabelledImages train, test;
  int64_t classes = 0;
};

// `data` is a folder of MNIST's or Fashion-MNIST's four files, of CIFAR-10's six, or of folders of pictures (image_folder.h), which are
// scaled to `side`; "" is Fashion-MNIST as Debian's package has it, and "mnist", "fashion_mnist" and "cifar10", where there is no folder
// of that name here, are the folders of that name in $ISONORM_DATA, ~/.cache/isonorm or /usr/share/datasets. Throws as the sets' readers do.
ImageSets load_images(const std::string& data, int64_t side);

// The files that it reads.
std::vector<std::string> image_files(const std::string& data);
// True if the folder of `data` holds a set of images. Throws as image_folder().
bool holds_images(const std::string& data);

// The folder that a name of a published set means, or `data` itself. Throws if there is no folder for the name.
std::string image_folder(const std::string& data);

}  // namespace isonorm::data
