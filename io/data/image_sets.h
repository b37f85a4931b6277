// Any set of images that a training may name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/data/image_folder.h"

namespace isonorm::data {

struct ImageSets {
  LabelledImages train, test;
  int64_t classes = 0;
  std::vector<std::string> names = {};  // of the classes, in the order of the labels; empty: unknown
};

// `data` is a folder with the four files of MNIST or Fashion-MNIST, with the six files of CIFAR-10, or with folders of pictures (image_folder.h);
// options.side, fit, held_out and tests_only are for pictures. "" is Fashion-MNIST as Debian's package has it. "mnist", "fashion_mnist" and "cifar10", if
// there is no folder of that name here, are the folders of that name in $ISONORM_DATA, ~/.cache/isonorm or /usr/share/datasets.
//
// options.classes: the labels are the places in this list of the names that the data have. If the data have no names (an MNIST or
// Fashion-MNIST whose folder does not say which, see published_classes()), the labels stay as they are and `names` is empty.
// Throws, naming both, if the data have a class that is not in the list; and as the readers of the sets.
ImageSets load_images(const std::string& data, const ImageFolderOptions& options);

// The names of the classes that load_images() finds without options.classes; empty: unknown. Reads no pictures. Throws as load_images().
std::vector<std::string> class_names(const std::string& data);

// The files that load_images() reads.
std::vector<std::string> image_files(const std::string& data);
// True if the set has images for tests of its own, so that none of its training images are held out.
bool has_own_tests(const std::string& data);
// "cat 12\ndog 11\n": the classes and numbers of pictures of a folder that is split; of any other set empty. The bytes of image_files()
// alone do not say which class a picture belongs to.
std::string class_counts(const std::string& data);
// True if the folder of `data` holds a set of images. Throws as image_folder().
bool holds_images(const std::string& data);

// The folder that a name of a published set means, or `data` itself. Throws if there is no folder for the name.
std::string image_folder(const std::string& data);

// The class names of CIFAR-10, or of MNIST or Fashion-MNIST if the folder says which of the two it is: `dir`, or the folder around it if that is `raw`, is
// named mnist, fashion_mnist, FashionMNIST, ... Empty for any other folder.
std::vector<std::string> published_classes(const std::string& dir);

// The place of a name in the list. Throws, naming `place`, if it is not there, or there twice (ImageNet has two classes "crane").
int64_t class_index(const std::vector<std::string>& classes, const std::string& name, const std::string& place);

// "cat, dog, and 8 more", for a message.
std::string class_list(const std::vector<std::string>& classes);

}  // namespace isonorm::data
