#include "io/data/loader.h"

#include <array>
#include <cmath>
#include <numeric>

#include "core/kernels/copy.h"
#include "core/view.h"

namespace isonorm::data {

void check_images(const LabelledImages& set) {
  check((set.images.rank() == 3 || set.images.rank() == 4) && set.labels.shape() == Dims{set.images.size(0)},
        "labelled images: images ", set.images.shape(), " and labels ", set.labels.shape(),
        ", expected [n, height, width] or [n, height, width, colours], and [n]");
  check(set.images.dtype() == DType::u8 && set.labels.dtype() == DType::i64, "labelled images: images are ",
        set.images.dtype(), " and labels ", set.labels.dtype(),
        ", expected u8 pixels and i64; for other numbers use data::TensorSet(images, labels)");
  check(set.images.device() == kCpu && set.labels.device() == kCpu, "labelled images: the set lies on ",
        set.images.device(), " and ", set.labels.device(), ", expected the CPU");
}

PixelScale measured_scale(const LabelledImages& set, DType dtype) {
  check_images(set);
  constexpr int kTables = 4;  // neighbouring pixels are often equal, and equal counts would wait for each other
  const Tensor pixels = detached::contiguous(set.images);
  const uint8_t* p = pixels.data<uint8_t>();
  std::array<std::array<int64_t, 256>, kTables> counts = {};
  for (int64_t i = 0; i < pixels.numel(); ++i) ++counts[static_cast<size_t>(i % kTables)][p[i]];
  double sum = 0, squares = 0;
  for (int v = 0; v < 256; ++v)
    for (const auto& table : counts) {
      const auto n = static_cast<double>(table[static_cast<size_t>(v)]);
      sum += n * v, squares += n * v * v;
    }
  const auto n = static_cast<double>(std::max<int64_t>(1, pixels.numel()));
  const auto digits = [](double x) { return std::round(x * 1e4) / 1e4; };
  const double mean = sum / n, deviation = digits(std::sqrt(std::max(0.0, squares / n - mean * mean)) / 255);
  return {.mean = {digits(mean / 255)}, .std = {deviation > 0 ? deviation : 1}, .dtype = dtype};
}

Batch gather_batch(const LabelledImages& set, std::span<const int64_t> indices, const PixelScale& scale) {
  check_images(set);
  const int64_t n = set.images.size(0), pixels = n == 0 ? 0 : set.images.numel() / n;
  const auto rows = static_cast<int64_t>(indices.size());
  const int64_t colours = set.images.rank() == 4 ? set.images.size(3) : 1;
  const auto tables = std::ssize(scale.mean);  // look-up tables of values, one for all channels or one per channel
  check(tables == std::ssize(scale.std) && (tables == 1 || tables == colours), "gather_batch: the scale has ", tables,
        " means and ", scale.std.size(), " deviations, images have ", colours, " channels");
  for (const double std : scale.std) check(std > 0, "gather_batch: std is ", std, ", expected above 0");
  Batch batch{empty({rows, set.images.size(1), set.images.size(2), colours}, {scale.dtype}),
              empty({rows}, {DType::i64})};
  const uint8_t* from = set.images.data<uint8_t>();
  const int64_t* labels = set.labels.data<int64_t>();
  int64_t* to_labels = batch.labels.mutable_data<int64_t>();
  visit_floating(scale.dtype, "gather_batch", [&]<class T>() {
    std::vector<std::array<T, 256>> values(scale.mean.size());
    for (size_t c = 0; c < values.size(); ++c)
      for (size_t p = 0; p < 256; ++p)
        values[c][p] = T((static_cast<double>(p) / 255.0 - scale.mean[c]) / scale.std[c]);
    T* to = batch.images.mutable_data<T>();
    for (int64_t r = 0; r < rows; ++r) {
      check(indices[r] >= 0 && indices[r] < n, "gather_batch: index ", indices[r], " of a set of ", n, " images");
      const uint8_t* image = from + indices[r] * pixels;
      for (int64_t i = 0; i < pixels; i += tables)
        for (int64_t c = 0; c < tables; ++c) *to++ = values[static_cast<size_t>(c)][image[i + c]];
      to_labels[r] = labels[indices[r]];
    }
  });
  return batch;
}

Batch slice_batch(const LabelledImages& set, int64_t begin, int64_t rows, const PixelScale& scale) {
  check(begin >= 0 && rows >= 0 && begin <= set.images.size(0) - rows, "slice_batch: images ", begin, " to ",
        begin + rows, " of a set of ", set.images.size(0));
  std::vector<int64_t> indices(static_cast<size_t>(rows));
  std::iota(indices.begin(), indices.end(), begin);
  return gather_batch(set, indices, scale);
}

Batch changed(const Batch& b, const LoaderOptions& o, int64_t step) {
  if (o.augment.any()) {
    std::vector<double> black;  // value of pixels outside of the image
    for (size_t c = 0; c < o.scale.mean.size(); ++c) black.push_back(-o.scale.mean[c] / o.scale.std[c]);
    augment(b.images, o.augment, black, o.seed, step);
  }
  if (o.mixup.alpha == 0) return b;
  const Tensor targets = mix(b.images, b.labels, o.mixup, o.seed, step);
  return {b.images, targets};
}

void check_no_change(const LoaderOptions& o) {
  check(!o.augment.any() && o.mixup.alpha == 0,
        "loader: LoaderOptions::augment and mixup are for data::LabelledImages; another set changes its items itself");
}

template class Loader<LabelledImages>;

Tensor stacked(const std::vector<Tensor>& tensors, size_t place, std::span<const int64_t> indices) {
  const Tensor& first = tensors.front();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& x = tensors[i];
    check(x.defined(), "loader: tensor ", place, " of item ", indices[i], " is undefined");
    check(x.device() == kCpu, "loader: tensor ", place, " of item ", indices[i], " lies on ", x.device(),
          ", expected the CPU; LoaderOptions::device says where batches arrive");
    check(x.dtype() == first.dtype() && x.shape() == first.shape(), "loader: tensor ", place, " of item ", indices[i],
          " is ", x.dtype(), ' ', x.shape(), ", item ", indices[0], "'s is ", first.dtype(), ' ', first.shape(),
          "; the items of a batch have one shape, or the set a gather(indices) that makes the batch");
  }
  Dims shape;
  shape.push_back(std::ssize(tensors));
  for (const int64_t n : first.shape()) shape.push_back(n);
  const Tensor all = empty(shape, {first.dtype()});
  for (size_t i = 0; i < tensors.size(); ++i)
    kernels::copy(detached::view(detached::narrow(all, 0, static_cast<int64_t>(i), 1), first.shape()), tensors[i]);
  return all;
}

void check_same_number(size_t found, size_t expected, std::span<const int64_t> indices, size_t item) {
  check(found == expected, "loader: item ", indices[item], " has ", found, " tensors, item ", indices[0], " has ",
        expected);
}

}  // namespace isonorm::data
