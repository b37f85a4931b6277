// Fashion-MNIST: 60,000 training and 10,000 test images of clothes, 28 x 28 grey levels, ten classes.
#pragma once

#include <string>
#include <vector>

#include "io/data/labelled_images.h"

namespace isonorm::data {

// The folder of Debian's package dataset-fashion-mnist.
inline constexpr const char* kFashionMnistDir = "/usr/share/datasets/fashion-mnist";
// Mean and standard deviation of a training pixel divided by 255.
inline constexpr double kFashionMnistMean = 0.2860, kFashionMnistStd = 0.3530;

struct FashionMnist {
  LabelledImages train;  // images [n, 28, 28]
  LabelledImages test;
  static constexpr int64_t kClasses = 10;

  // Reads {train,t10k}-images-idx3-ubyte and {train,t10k}-labels-idx1-ubyte, each with or without ".gz", from `dir` (if
  // empty, from the Debian folder). Any number of 28 x 28 images will do. Throws if a file is missing (the message says
  // what to install) or damaged, if the numbers of images and labels differ, or if a label is not below 10. Source:
  // Xiao, Rasul, Vollgraf, "Fashion-MNIST", arXiv:1708.07747.
  static FashionMnist load(const std::string& dir = "");
  static bool is_in(const std::string& dir);  // true if a file of training images is there
  // The names of the four files, without ".gz".
  static std::vector<std::string> names();
  // The four files that load(dir) reads, in that order.
  static std::vector<std::string> files(const std::string& dir = "");
};

}  // namespace isonorm::data
