// Images with a class label each, and the sets of them that were published as files: CIFAR-10 and the MNIST family.
#pragma once

#include <string>
#include <vector>

#include "core/system/file.h"
#include "core/tensor.h"

namespace isonorm::data {

struct LabelledImages {
  Tensor images;  // u8 [n, height, width] of grey levels, or [n, height, width, colours]
  Tensor labels;  // i64 [n]

  int64_t size() const { return images.size(0); }
};

// CIFAR-10: 50,000 training and 10,000 test images of animals and vehicles, 32 x 32 in three colours, ten classes.

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

// Fashion-MNIST: 60,000 training and 10,000 test images of clothes, 28 x 28 grey levels, ten classes.

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

// The idx format of the MNIST family of data sets, plain or gzip-compressed, in one member or several. Files are not
// trusted: sizes are bounded before memory is allocated, and the data must be exactly as long as the header says.

// Largest number of elements a file may declare: 2^31, forty times Fashion-MNIST.
inline constexpr int64_t kIdxLimit = int64_t{1} << 31;

// The array in an idx file: two zero bytes, type (0x08: unsigned byte, the only one read), rank (1 to 8), the sizes as
// big-endian 32-bit numbers, then the elements in row-major order. Result: u8. Throws (invalid) on anything else:
// another magic number or type, a rank outside of 1..8, more than kIdxLimit elements, more than deflate can hold in a
// file of this size, damaged compression, missing or left-over bytes. Format: http://yann.lecun.com/exdb/mnist (section
// "the IDX file format"); gzip: RFC 1952.
Tensor read_idx(const std::string& path);
Tensor read_idx(const Bytes& file);

}  // namespace isonorm::data
