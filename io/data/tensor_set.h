// Sets of examples for a Loader: tensors of equal numbers of rows, a part of a set, random parts.
#pragma once

#include <array>
#include <concepts>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace isonorm::data {

// Internal. The rows at `indices` of x [n, ...], on the CPU, of any dtype, without graph. Throws if an index is outside
// of [0, n).
Tensor gather_rows(const Tensor& x, std::span<const int64_t> indices);
// Internal. Row i, x[i], which shares x's storage.
Tensor row_of(const Tensor& x, int64_t i);
// Internal. Throws unless the tensors, at least one, have the same size(0) and lie on the CPU.
std::vector<Tensor> checked_rows(std::vector<Tensor> tensors);
// Internal. Throws unless all of `indices` are in [0, n).
std::vector<int64_t> checked_indices(std::vector<int64_t> indices, int64_t n);
// Internal. 0 to n - 1 in random order, cut into pieces of these sizes, which sum to n, or of these fractions of n,
// which sum to 1.
std::vector<std::vector<int64_t>> random_parts(int64_t n, std::vector<int64_t> sizes, uint64_t seed);
std::vector<std::vector<int64_t>> random_parts(int64_t n, const std::vector<double>& fractions, uint64_t seed);
// Internal. The same in k pieces whose sizes differ by at most one.
std::vector<std::vector<int64_t>> random_folds(int64_t n, int64_t k, uint64_t seed);

// Example i is row i of each of N tensors [n, ...] of any dtype, on the CPU (torch.utils.data.TensorDataset). Shares
// the tensors' storage if they are contiguous.
//
//   data::TensorSet set(x, y);
//   data::Loader loader(set, {.rows = 64, .seed = 1});
//   for (const auto& [x, y] : loader) ...
template <size_t N> class TensorSet {
 public:
  using Tensors = std::array<Tensor, N>;

  // Throws if the numbers of rows differ, or a tensor has no rows to count (shape []) or is not on the CPU.
  template <std::convertible_to<Tensor>... T>
  requires(sizeof...(T) == N && N > 0) explicit TensorSet(const T&... tensors) {
    std::ranges::copy(checked_rows({Tensor(tensors)...}), tensors_.begin());
  }

  int64_t size() const { return tensors_[0].size(0); }
  Tensors operator[](int64_t i) const {
    return each([&](const Tensor& x) { return row_of(x, i); });
  }
  // The rows at `indices`, in that order.
  Tensors gather(std::span<const int64_t> indices) const {
    return each([&](const Tensor& x) { return gather_rows(x, indices); });
  }

 private:
  template <class F> Tensors each(const F& f) const {
    return std::apply([&](const auto&... x) { return Tensors{f(x)...}; }, tensors_);
  }
  Tensors tensors_;
};
template <std::convertible_to<Tensor>... T> TensorSet(const T&...) -> TensorSet<sizeof...(T)>;

// The examples of a set at `indices`, in that order; an index may come twice. Holds a copy of the set.
template <class Set> class Subset {
 public:
  // Throws if an index is outside of [0, set.size()).
  Subset(Set set, std::vector<int64_t> indices)
      : Subset(std::make_shared<const Set>(std::move(set)), std::move(indices)) {}
  Subset(std::shared_ptr<const Set> set, std::vector<int64_t> indices)
      : set_(std::move(set)), indices_(checked_indices(std::move(indices), static_cast<int64_t>(set_->size()))) {}

  int64_t size() const { return std::ssize(indices_); }
  decltype(auto) operator[](int64_t i) const requires requires(const Set& set) { set[int64_t{0}]; }
  { return (*set_)[indices_.at(static_cast<size_t>(i))]; }

  const Set& set() const { return *set_; }
  // The indices in set() of the examples at `places`.
  std::vector<int64_t> in_set(std::span<const int64_t> places) const {
    std::vector<int64_t> found;
    for (const int64_t i : places) found.push_back(indices_.at(static_cast<size_t>(i)));
    return found;
  }

 private:
  std::shared_ptr<const Set> set_;
  std::vector<int64_t> indices_;
};

// Splits a set into random parts without common examples, which together have all (torch.utils.data.random_split). The
// numbers are sizes that sum to set.size(), or fractions that sum to 1; part k then ends at example round((f_0 + .. +
// f_k) n). The result depends only on size and seed.
//
//   const auto [train, test] = data::random_split(set, {0.9, 0.1}, seed);
template <class Set, class Number, size_t N>
std::array<Subset<Set>, N> random_split(Set set, const Number (&parts)[N], uint64_t seed = 0) {
  using Value = std::conditional_t<std::floating_point<Number>, double, int64_t>;
  const auto shared = std::make_shared<const Set>(std::move(set));
  const std::vector<std::vector<int64_t>> all =
      random_parts(static_cast<int64_t>(shared->size()), std::vector<Value>(std::begin(parts), std::end(parts)), seed);
  return [&]<size_t... i>(std::index_sequence<i...>) {
    return std::array<Subset<Set>, N>{Subset<Set>(shared, all[i])...};
  }
  (std::make_index_sequence<N>());
}

// A training and a test part.
template <class Set> struct Fold { Subset<Set> train, test; };

// k-fold cross-validation: k pairs of parts. The test parts have no common example, together have all examples, and
// differ by at most one in size. The training part has the other examples. The result depends only on size, k and seed.
// Throws unless 2 <= k <= set.size().
//
//   for (const auto& [train, test] : data::k_folds(set, 5)) ...
template <class Set> std::vector<Fold<Set>> k_folds(Set set, int64_t k, uint64_t seed = 0) {
  const auto shared = std::make_shared<const Set>(std::move(set));
  const std::vector<std::vector<int64_t>> parts = random_folds(static_cast<int64_t>(shared->size()), k, seed);
  std::vector<Fold<Set>> folds;
  for (size_t test = 0; test < parts.size(); ++test) {
    std::vector<int64_t> others;
    for (size_t i = 0; i < parts.size(); ++i)
      if (i != test) others.insert(others.end(), parts[i].begin(), parts[i].end());
    folds.push_back({Subset<Set>(shared, std::move(others)), Subset<Set>(shared, parts[test])});
  }
  return folds;
}

}  // namespace isonorm::data
