// Loader: the batches of a set of examples. The batch of a step depends only on seed and step.
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/tensor.h"
#include "io/data/augment.h"
#include "io/data/each_tensor.h"
#include "io/data/prefetch.h"
#include "io/data/published_sets.h"
#include "io/data/sampler.h"
#include "io/data/tensor_set.h"

namespace isonorm::data {

// How examples become a batch: tensors are stacked along a new first dimension.

// Stacks one tensor of each item, all of shape [...], to [rows, ...] on the CPU, without graph. Throws unless shapes
// and dtypes are equal and all tensors are on the CPU; the message names `place`, the position of the tensor in its
// item, and `indices`, the positions of the items in the set.
Tensor stacked(const std::vector<Tensor>& tensors, size_t place, std::span<const int64_t> indices);

// Throws unless found == expected: indices[item] must have the same number of tensors as the first item.
void check_same_number(size_t found, size_t expected, std::span<const int64_t> indices, size_t item);

// set[i] for each of `indices`, stacked: an item whose every tensor has a new first dimension. Item: see each_tensor().
template <class Set> auto collate(const Set& set, std::span<const int64_t> indices) {
  using Item = std::remove_cvref_t<decltype(set[indices[0]])>;
  std::vector<std::vector<Tensor>> columns;
  std::vector<Item> items;
  for (const int64_t i : indices) items.push_back(set[i]);
  for (size_t row = 0; row < items.size(); ++row) {
    size_t place = 0;
    each_tensor(std::as_const(items[row]), [&](const Tensor& x) {
      if (row == 0) columns.emplace_back();
      if (place < columns.size()) columns[place].push_back(x);
      ++place;
    });
    check_same_number(place, columns.size(), indices, row);
  }
  size_t place = 0;
  each_tensor(items.front(), [&](Tensor& x) { x = stacked(columns[place], place, indices), ++place; });
  return std::move(items.front());
}

struct Batch {
  Tensor images;  // floating [rows, height, width, channels]; grey levels: 1 channel
  Tensor labels;  // i64 [rows]; with mixup: distributions [rows, classes]
};

// Normalizes pixels: (pixel / 255 - mean) / std. Each vector has one number for all channels, or one per channel.
struct PixelScale {
  std::vector<double> mean = {kFashionMnistMean};
  std::vector<double> std = {kFashionMnistStd};
  DType dtype = DType::f32;
};

// The scale of a set of u8 images: mean and standard deviation of its pixels to four digits, as they are published
// (Fashion-MNIST 0.2860 and 0.3530, MNIST 0.1307 and 0.3081, CIFAR-10 0.4734 and 0.2516). If all pixels are equal, the
// standard deviation is 1.
PixelScale measured_scale(const LabelledImages& set, DType dtype = DType::f32);

// The images and labels at `indices`, in that order. Values are computed in double and rounded once to the dtype.
// Throws if an index is outside of the set, the dtype is not floating, a std is not positive, or the scale has another
// number of channels than the images.
Batch gather_batch(const LabelledImages& set, std::span<const int64_t> indices, const PixelScale& scale = {});
// The images [begin, begin + rows) in the order of the file, for a test pass.
Batch slice_batch(const LabelledImages& set, int64_t begin, int64_t rows, const PixelScale& scale = {});

struct LoaderOptions {
  int64_t rows = 64;
  uint64_t seed = 0;
  PixelScale scale = {};               // LabelledImages only
  Augmentation augment = {};           // LabelledImages only
  Mixup mixup = {};                    // LabelledImages only: after `augment`
  bool shuffle = true;                 // false: in the order of the set
  std::optional<bool> drop_last = {};  // SamplerOptions::drop_last; unset: same as `shuffle`
  std::vector<double> weights = {};    // SamplerOptions::weights: draws with replacement; empty: no weights
  int prefetch = 2;                    // batches that a thread prepares ahead of next(); 0: no thread
  Device device = kCpu;                // where batches are delivered; copies overlap the device's computation
};

// Throws unless images are u8 [n, height, width] or [n, height, width, colours] and labels i64 [n], both on the CPU.
void check_images(const LabelledImages& set);

// Internal. The examples of a set at `indices`, as one batch on the CPU.
template <class Set> auto gather(const Set& set, std::span<const int64_t> indices, const LoaderOptions&) {
  if constexpr (requires { set.gather(indices); }) {
    return set.gather(indices);
  } else {
    static_assert(
        requires {
          set.size();
          set[int64_t{0}];
        },
        "data::Loader: a set has size() const, and operator[](int64_t) const, which gives a tensor, or a "
        "pair, tuple or struct of tensors");
    return collate(set, indices);
  }
}
inline Batch gather(const LabelledImages& set, std::span<const int64_t> indices, const LoaderOptions& o) {
  return gather_batch(set, indices, o.scale);
}
template <class Set> auto gather(const Subset<Set>& set, std::span<const int64_t> indices, const LoaderOptions& o) {
  return gather(set.set(), set.in_set(indices), o);
}

// Internal. Augments and mixes the batch of a step. check_no_change() throws if the options ask for either; it is for
// batches that are not images.
Batch changed(const Batch& batch, const LoaderOptions& o, int64_t step);
void check_no_change(const LoaderOptions& o);

// Batches of a set: by number, in sequence, or epoch by epoch.
//
// A set is LabelledImages, a TensorSet, a Subset, or any type with `size() const` and `operator[](int64_t) const`,
// which returns an item: a tensor, or a pair, tuple or struct of tensors (training::Examples, too). A batch is an item
// whose tensors are stacked along a new first dimension; all items must have the same shapes. If the set has
// `gather(std::span<const int64_t> indices) const`, that function makes the batch instead, of any type that contains
// tensors: it may pad sequences.
//
// The loader keeps a copy of the set, whose tensors share their storage with the original. The thread and batch() read
// that copy at the same time.
//
// Random functions that the set calls draw from a sequence that depends only on the loader's seed and the number of the
// batch: the same for any prefetch, after seek(), and in batch(). The caller's default generator does not change.
//
// With prefetch > 0, next() and seek() throw in a child of fork(), which does not have the thread. The child can make
// another loader.
//
//   for (int epoch = 0; epoch < 10; ++epoch)
//     for (const auto& [images, labels] : loader) ...
template <class Set> class Loader {
 public:
  using Batch = decltype(gather(std::declval<const Set&>(), {}, {}));

  // Throws like Sampler; if LabelledImages have another dtype or shape; if the set is not LabelledImages and an option
  // needs them.
  explicit Loader(Set set, LoaderOptions options = {});

  Batch batch(int64_t step) { return ahead_.batch(step); }  // of any step; does not change next()
  Batch next() { return ahead_.next(); }                    // of step 0, 1, ...; rethrows errors of the thread
  void seek(int64_t step) { ahead_.seek(step); }            // the next call of next() returns this step's batch

  int64_t step() const { return ahead_.step(); }  // step of the batch that next() returns
  int64_t steps_per_epoch() const { return sampler_.steps_per_epoch(); }

  // The batches that next() returns, up to the end of the epoch of the first one.
  EpochIterator<Loader> begin() { return EpochIterator(*this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  static std::function<Batch(int64_t)> batches(Set set, const LoaderOptions& o, const Sampler& sampler);

  Sampler sampler_;
  Ahead<Batch> ahead_;
};

template <class Set>
Loader<Set>::Loader(Set set, LoaderOptions options)
    : sampler_(static_cast<int64_t>(set.size()), options.rows, options.seed,
               {.shuffle = options.shuffle, .drop_last = options.drop_last, .weights = options.weights}),
      ahead_(batches(std::move(set), options, sampler_), options.seed, options.prefetch, options.device) {}

template <class Set>
auto Loader<Set>::batches(Set set, const LoaderOptions& o, const Sampler& sampler) -> std::function<Batch(int64_t)> {
  constexpr bool images = std::same_as<Batch, data::Batch>;
  if constexpr (std::same_as<Set, LabelledImages>) check_images(set);
  if (!images) check_no_change(o);
  return [set = std::make_shared<const Set>(std::move(set)), o, sampler = Sampler(sampler)](int64_t step) mutable {
    auto batch = gather(*set, sampler.batch(step), o);
    if constexpr (images) batch = changed(batch, o, step);
    return batch;
  };
}

extern template class Loader<LabelledImages>;  // loader.cpp: a script that loads images does not compile it again

}  // namespace isonorm::data
