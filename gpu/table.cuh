// Kernels over many tensors: a launch processes a table, which is its argument (at most 4 KiB, which every
// device takes). Each tensor is cut into pieces of kPiece elements. A block of kTableThreads threads processes a piece
// and finds its tensor by binary search. All parameters of a model take a handful of launches, and a small tensor
// costs one block.
#pragma once

#include "core/tensor.h"
#include "gpu/block.cuh"
#include "gpu/launch.h"

namespace isonorm::gpu {

inline constexpr int kTableThreads = 256;
inline constexpr int64_t kPiece = 4096;

// The blocks of a launch are divided among the items; the blocks of item i begin at first[i].
template <class Item> struct Table {
  static constexpr int kItems = (4096 - 64 - 16) / static_cast<int>(sizeof(Item) + sizeof(int64_t));
  int count = 0;
  int64_t first[kItems] = {}, blocks = 0;
  Item items[kItems] = {};

  bool full() const { return count == kItems; }
  void add(const Item& item, int64_t of_item) {
    first[count] = blocks;
    items[count++] = item;
    blocks += of_item;
  }
  // The item of this block.
  __device__ __forceinline__ int find(int64_t block) const {
    int at = 0;
    for (int n = count; n > 1;) {
      const int half = n / 2;
      if (first[at + half] <= block) at += half;
      n -= half;
    }
    return at;
  }
};

// Launches the kernel for the table's items and empties the table.
template <class Item, class... A, class... B>
void launch_table(const char* name, void (*kernel)(Table<Item>, A...), Table<Item>& table, const Tensor& on,
                  const B&... arguments) {
  static_assert(sizeof(Table<Item>) + 64 <= 4096);
  if (table.blocks > 0)
    launch(name, kernel, blocks_of(table.blocks, kTableThreads), stream_of(on), table, arguments...);
  table = {};
}

// Calls one(i) for each element i of a piece of `count`. With `packs`, it calls pack(i) for the N elements from i on
// instead, while N are left. A thread has the same elements in the same order with and without packs.
template <int N, class Packs, class One>
__device__ __forceinline__ void for_piece(int64_t piece, int64_t count, bool packs, const Packs& pack, const One& one) {
  const int64_t begin = piece * kPiece, end = begin + kPiece < count ? begin + kPiece : count;
  const int64_t whole = begin + (end - begin) / N * N;
  for (int64_t i = begin + int64_t{threadIdx.x} * N; i < whole; i += kTableThreads * N) {
    if (packs) {
      pack(i);
    } else {
      for (int k = 0; k < N; ++k) one(i + k);
    }
  }
  for (int64_t i = whole + threadIdx.x; i < end; i += kTableThreads) one(i);
}

}  // namespace isonorm::gpu
