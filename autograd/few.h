// A list of a length that is known when it is made.
#pragma once

#include <cstddef>

namespace isonorm {

// `size` items T(), up to N of them inside of the list itself.
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
  T& operator[](size_t i) { return items_[i]; }
  const T& operator[](size_t i) const { return items_[i]; }
  T* begin() { return items_; }
  T* end() { return items_ + size_; }

 private:
  size_t size_;
  T inside_[N];
  T* items_ = inside_;
};

}  // namespace isonorm
