// How examples become a batch: tensors are stacked along a new first dimension.
#pragma once

#include <span>
#include <vector>

#include "io/data/each_tensor.h"

namespace isonorm::data {

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

}  // namespace isonorm::data
