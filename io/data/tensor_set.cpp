#include "io/data/tensor_set.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include "core/view.h"
#include "io/data/sampler.h"

namespace isonorm::data {

Tensor gather_rows(const Tensor& x, std::span<const int64_t> indices) {
  const int64_t n = x.size(0);
  Dims shape = x.shape();
  shape[0] = std::ssize(indices);
  const Tensor rows = empty(shape, {x.dtype()}), from = detached::contiguous(x);
  const auto bytes_at = [](const Tensor& t) {
    return static_cast<std::byte*>(t.impl().storage->data()) + t.impl().offset * size_of(t.dtype());
  };
  const auto bytes = static_cast<size_t>(n == 0 ? 0 : x.numel() / n * size_of(x.dtype()));
  for (size_t r = 0; r < indices.size(); ++r) {
    check(indices[r] >= 0 && indices[r] < n, "data: row ", indices[r], " of a tensor ", x.shape());
    if (bytes > 0)
      std::memcpy(bytes_at(rows) + r * bytes, bytes_at(from) + static_cast<size_t>(indices[r]) * bytes, bytes);
  }
  return rows;
}

Tensor row_of(const Tensor& x, int64_t i) {
  check(i >= 0 && i < x.size(0), "data: row ", i, " of a tensor ", x.shape());
  Dims shape;
  for (int d = 1; d < x.rank(); ++d) shape.push_back(x.size(d));
  return detached::view(detached::narrow(x, 0, i, 1), shape);
}

std::vector<Tensor> checked_rows(std::vector<Tensor> tensors) {
  for (size_t k = 0; k < tensors.size(); ++k) {
    Tensor& x = tensors[k];
    check(x.defined() && x.rank() > 0, "tensor_set: tensor ", k, x.defined() ? " has the shape []" : " is undefined",
          ", expected [n, ...]");
    check(x.device() == kCpu, "tensor_set: tensor ", k, " lies on ", x.device(),
          ", expected the CPU; LoaderOptions::device says where batches arrive");
    check(x.size(0) == tensors[0].size(0), "tensor_set: tensor ", k, " has ", x.size(0), " rows, tensor 0 has ",
          tensors[0].size(0));
    x = detached::contiguous(x);
  }
  return tensors;
}

std::vector<int64_t> checked_indices(std::vector<int64_t> indices, int64_t n) {
  for (const int64_t i : indices) check(i >= 0 && i < n, "subset: index ", i, " of a set of ", n, " examples");
  return indices;
}

std::vector<std::vector<int64_t>> random_parts(int64_t n, std::vector<int64_t> sizes, uint64_t seed) {
  int64_t sum = 0;
  for (const int64_t size : sizes) {
    check(size >= 0, "random_split: a part of ", size, " examples, expected 0 or more");
    check(size <= n - sum, "random_split: parts of ", sum, " and ", size, " examples, and the set has ", n);
    sum += size;
  }
  check(sum == n, "random_split: parts of ", sum, " examples, and the set has ", n);
  std::vector<std::vector<int64_t>> parts(sizes.size());
  if (n == 0) return parts;
  Sampler sampler(n, n, seed);
  auto next = sampler.batch(0).begin();
  for (size_t k = 0; k < sizes.size(); ++k, next += sizes[k - 1]) parts[k].assign(next, next + sizes[k]);
  return parts;
}

std::vector<std::vector<int64_t>> random_parts(int64_t n, const std::vector<double>& fractions, uint64_t seed) {
  double sum = 0;
  std::vector<int64_t> sizes;
  int64_t begin = 0;
  for (const double f : fractions) {
    check(f >= 0 && f <= 1, "random_split: a fraction of ", f, ", expected 0 to 1");
    sum += f;
    const int64_t end = std::min(n, static_cast<int64_t>(std::llround(sum * static_cast<double>(n))));
    sizes.push_back(end - begin);
    begin = end;
  }
  check(std::abs(sum - 1) < 1e-6, "random_split: fractions sum to ", sum, ", expected 1");
  sizes.back() += n - begin;
  return random_parts(n, std::move(sizes), seed);
}

std::vector<std::vector<int64_t>> random_folds(int64_t n, int64_t k, uint64_t seed) {
  check(k >= 2 && k <= n, "k_folds: ", k, " folds of ", n, " examples, expected 2 to the number of examples");
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < k; ++i) sizes.push_back(n * (i + 1) / k - n * i / k);
  return random_parts(n, std::move(sizes), seed);
}

}  // namespace isonorm::data
