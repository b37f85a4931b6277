// A list whose length is fixed at construction.
#pragma once

#include <cstddef>

#include "core/dims.h"

namespace isonorm {

// `size` items T(), stored inside the list itself if there are at most N.
template <class T, size_t N> class Few {
 public:
  explicit Few(size_t size) : size_(size) {
    if (size > N) items_ = new T[size];
  }
  ~Few() {
    if (items_ != inside_) delete[] items_;
  }
  Few(const Few&) = delete;
  Few& operator=(const Few&) = delete;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Item i, counted from the end if i is negative. Throws "rule: index 2 is out of range for 1 entry".
  T& operator[](int64_t i) { return items_[place(i)]; }
  const T& operator[](int64_t i) const { return items_[place(i)]; }
  T* begin() { return items_; }
  T* end() { return items_ + size_; }

 private:
  size_t place(int64_t i) const {
    const auto at = static_cast<size_t>(i);
    return at < size_ ? at : static_cast<size_t>(normalize_index(i, static_cast<int64_t>(size_), "rule"));
  }

  size_t size_;
  T inside_[N];
  T* items_ = inside_;
};

}  // namespace isonorm
