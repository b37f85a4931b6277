// A std::vector whose operator[] is checked and counts from the end.
#pragma once

#include <vector>

#include "core/dims.h"

namespace isonorm {

template <class T> struct CheckedVector : std::vector<T> {
  using std::vector<T>::vector;

  // Entry i, counted from the end if i is negative. Throws "list: index 5 is out of range for 3 entries".
  T& operator[](int64_t i) { return this->data()[place(i)]; }
  const T& operator[](int64_t i) const { return this->data()[place(i)]; }

 private:
  int64_t place(int64_t i) const { return normalize_index(i, static_cast<int64_t>(this->size()), "list"); }
};

}  // namespace isonorm
