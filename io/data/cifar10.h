// CIFAR-10: 50,000 training and 10,000 test images of animals and vehicles, 32 x 32 in three colours, ten classes.
#pragma once

#include <string>
#include <vector>

#include "io/data/labelled_images.h"

namespace isonorm::data {

struct Cifar10 {
  LabelledImages train, test;  // images [n, 32, 32, 3]: red, green, blue
  static constexpr int64_t kClasses = 10;

  // True if the folder has the first of the files, which other sets do not have.
  static bool is_in(const std::string& dir);
  // Reads data_batch_1.bin to data_batch_5.bin and test_batch.bin, the "binary version", from `dir`. A record is a
  // label followed by the planes of the three colours, 1,024 bytes each; a file may have any number of records from 1
  // on. Throws if a file is missing (the message says where to get it) or does not consist of whole records, or if a
  // label is not below 10. Source: Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009.
  static Cifar10 load(const std::string& dir);
  // The six files that load(dir) reads, in that order.
  static std::vector<std::string> files(const std::string& dir);
  static std::vector<std::string> names();  // without the folder
};

}  // namespace isonorm::data
