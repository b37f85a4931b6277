// Batches of labelled images as a model takes them. The batch of a step depends only on seed and step.
#pragma once

#include "core/tensor.h"
#include "data/ahead.h"
#include "data/augment.h"
#include "data/epoch.h"
#include "data/fashion_mnist.h"
#include "data/sampler.h"

namespace isonorm::data {

struct Batch {
  Tensor images;  // floating [rows, height, width, colours], of grey levels 1
  Tensor labels;  // i64 [rows]; of a loader with mixup distributions [rows, classes]
};

// How pixels become numbers: (pixel / 255 - mean) / std.
struct PixelScale {
  double mean = kFashionMnistMean;
  double std = kFashionMnistStd;
  DType dtype = DType::f32;
};

// That of a set, of u8 pixels: their mean and standard deviation in four digits, as these are published (Fashion-MNIST 0.2860 and
// 0.3530, MNIST 0.1307 and 0.3081, CIFAR-10 0.4734 and 0.2516); of pixels that are all alike the deviation counts as 1.
PixelScale measured_scale(const LabelledImages& set, DType dtype = DType::f32);

// The images and labels at `indices`, in that order; every value is computed in double and rounded once to the dtype.
// Throws where an index is outside of the set, the dtype is not floating or std is not positive.
Batch gather_batch(const LabelledImages& set, std::span<const int64_t> indices, const PixelScale& scale = {});
// The images [begin, begin + rows) in the order of the file, as a test pass reads them.
Batch slice_batch(const LabelledImages& set, int64_t begin, int64_t rows, const PixelScale& scale = {});

struct LoaderOptions {
  int64_t rows = 64;
  uint64_t seed = 0;
  PixelScale scale = {};
  Augmentation augment = {};  // of batches, by seed and step
  Mixup mixup = {};           // behind that
  bool shuffle = true;   // false: in the order of the set, with a last batch of what is left, as a test pass reads it
  int prefetch = 2;      // batches a thread prepares ahead of next(); 0: none, next() prepares them itself
  Device device = kCpu;  // where batches arrive; those of next() travel while the device computes
};

// Batches of a set, by number, one after the other, or epoch by epoch. Copies of the set's handles are kept, not of its
// pixels. With prefetch > 0 a child of fork() does not have the thread: next() and seek() throw there. The child can make another loader.
//
//   for (int epoch = 0; epoch < 10; ++epoch)
//     for (const auto& [images, labels] : loader) ...
class Loader {
 public:
  explicit Loader(const LabelledImages& set, LoaderOptions options = {});

  Batch batch(int64_t step);  // of any step; does not disturb next()
  Batch next();               // of step 0, 1, ...; rethrows what went wrong in the thread
  void seek(int64_t step);    // the next next() gives this step's batch

  int64_t step() const;  // of the batch that next() gives
  int64_t steps_per_epoch() const { return sampler_.steps_per_epoch(); }

  // The batches that next() gives, to the end of the epoch that the first of them is in.
  EpochIterator<Loader> begin() { return EpochIterator(*this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  LabelledImages set_;
  LoaderOptions options_;
  Sampler sampler_;
  Ahead ahead_;
};

}  // namespace isonorm::data
