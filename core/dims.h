// Dims: up to eight sizes or strides. Trivially copyable, so that kernels take it by value. Products are checked for
// overflow.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "core/error.h"

namespace isonorm {

inline constexpr int kMaxRank = 8;

struct Dims {
  int rank = 0;
  int64_t v[kMaxRank];  // entries from `rank` on are unspecified

  Dims() {}  // not defaulted, so that a constant Dims can be declared although v is not set
  Dims(std::initializer_list<int64_t> sizes) : Dims(std::span<const int64_t>(sizes.begin(), sizes.size())) {}
  explicit Dims(std::span<const int64_t> sizes) {
    check(sizes.size() <= kMaxRank, "shape: rank ", sizes.size(), " is over the limit of ", kMaxRank);
    for (int64_t s : sizes) v[rank++] = s;
  }

  // Size i, counted from the end if i is negative: shape[-1] is the last size. Throws "shape: index 3 is out of range
  // for [2, 8, 16]". Kernels and inner loops, whose i is in [0, rank), read v[i] instead.
  int64_t operator[](int64_t i) const { return v[place(i)]; }
  int64_t& operator[](int64_t i) { return v[place(i)]; }
  const int64_t* begin() const { return v; }
  const int64_t* end() const { return v + rank; }
  bool operator==(const Dims& o) const {
    if (rank != o.rank) return false;
    for (int i = 0; i < rank; ++i)
      if (v[i] != o.v[i]) return false;
    return true;
  }
  void push_back(int64_t s) {
    check(rank < kMaxRank, "shape: rank is over the limit of ", kMaxRank);
    v[rank++] = s;
  }

 private:
  int64_t place(int64_t i) const { return static_cast<uint64_t>(i) < static_cast<uint64_t>(rank) ? i : from_end(i); }
  int64_t from_end(int64_t i) const;
};

// A set of dimensions: bit d is 1 if d belongs to it.
using DimSet = uint32_t;

// "[2, 3]"
void append_text(std::string& s, const Dims& d);

// Product of the sizes, 1 for rank 0. Throws "op: ..." if a size is negative or the product overflows int64.
int64_t numel(const Dims& shape, const char* op = "shape");

// a * b and a + b of sizes. Throw if the result overflows int64; the message begins with `what`.
int64_t checked_mul(int64_t a, int64_t b, const char* what);
int64_t checked_add(int64_t a, int64_t b, const char* what);

// Sizes [begin, end) of a shape.
inline Dims part(const Dims& shape, int begin, int end) {
  return Dims(std::span<const int64_t>(shape.v + begin, static_cast<size_t>(end - begin)));
}

// Row-major strides, in elements.
Dims contiguous_strides(const Dims& shape);

// Maps dim from [-rank, rank) to [0, rank). Throws "op: dimension 5 is out of range for rank 3".
int normalize_dim(int dim, int rank, const char* op);

// Maps i from [-size, size) to [0, size). Throws "what: index 5 is out of range for 3 entries".
int64_t normalize_index(int64_t i, int64_t size, const char* what);

// The shape that both broadcast to: aligned at the last dimension, sizes of 1 are stretched. Throws naming op and both
// shapes.
Dims broadcast_shapes(const Dims& a, const Dims& b, const char* op);

}  // namespace isonorm
