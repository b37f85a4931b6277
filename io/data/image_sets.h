// The image data sets that --data accepts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/data/image_folder.h"

namespace isonorm::data {

struct ImageSets {
  LabelledImages train, test;
  int64_t classes = 0;
  std::vector<std::string> names = {};  // class names in the order of the labels; empty: unknown
};

// Reads a data set. `data` is a folder with the four files of MNIST or Fashion-MNIST, with the six files of CIFAR-10,
// or with folders of pictures (image_folder.h), for which options.side, fit, held_out and tests_only are. "":
// Fashion-MNIST from Debian's package. "mnist", "fashion_mnist" or "cifar10", if there is no such folder in the working
// directory: the folder of that name in $ISONORM_DATA, ~/.cache/isonorm or /usr/share/datasets.
//
// options.classes: each label becomes the index of its class name in this list. If the data have no class names (an
// MNIST or Fashion-MNIST whose folder does not tell which, see published_classes()), labels stay unchanged and `names`
// is empty. Throws, naming both, if the data have a class that is not in the list; and whatever the readers of the sets
// throw.
ImageSets load_images(const std::string& data, const ImageFolderOptions& options);

// The class names that load_images() finds without options.classes; empty: unknown. Reads no pictures. Throws like
// load_images().
std::vector<std::string> class_names(const std::string& data);

// The files that load_images() reads.
std::vector<std::string> image_files(const std::string& data);
// True if the set has its own test images, so that no training images are held out.
bool has_own_tests(const std::string& data);
// "cat 12\ndog 11\n": the number of pictures per class of a folder that is split; empty for any other set. The bytes of
// image_files() alone do not tell which class a picture belongs to.
std::string class_counts(const std::string& data);
// The files that --data may read, for any model; they must not be overwritten: the file `data` itself, and the files
// that image sets and pairs read from the folder `data`. For an ImageFolder these are all files below its folders,
// whether they are read or not; for other sets all names that they look for, whether they exist or not. Empty `data`:
// the default folder of images.
std::vector<std::string> data_files(const std::string& data);
// True if `data` is an image set. Throws like image_folder().
bool holds_images(const std::string& data);

// The folder of a published set by name, or `data` itself. Throws if there is no folder for the name.
std::string image_folder(const std::string& data);

// The class names of CIFAR-10, or of MNIST or Fashion-MNIST if the folder's name tells which (mnist, fashion_mnist,
// FashionMNIST, ...). If `dir` is named `raw`, its parent's name counts. Empty for any other folder.
std::vector<std::string> published_classes(const std::string& dir);

// The index of a name in the list. Throws, naming `place`, if the name is missing or occurs twice (ImageNet has two
// classes "crane").
int64_t class_index(const std::vector<std::string>& classes, const std::string& name, const std::string& place);

// "cat, dog, and 8 more", for a message.
std::string class_list(const std::vector<std::string>& classes);

}  // namespace isonorm::data
