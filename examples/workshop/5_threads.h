// Step 5: rows shared among threads.
//
// Rows are independent, so the forward takes blocks of rows. The sums over all rows, dgain and dbias, are not:
// each block has partial sums of its own, which are added in order. The blocks, and so the bits, depend on the shape
// alone, not on the number of threads or on which thread is free.
#pragma once

#include <algorithm>

#include "core/cpu/workspace.h"
#include "core/system/parallel.h"

namespace isonorm::workshop {
namespace {

// Blocks of 8192 elements: enough to be worth a thread.
inline Partition row_blocks(int64_t rows, int64_t width) {
  return even_blocks(rows, std::max<int64_t>(1, 8192 / width));
}

// Calls f(begin, end, dgain, dbias) for about 32 blocks of rows. f adds to sums that are zero at first.
template <class F> void summed_blocks(int64_t rows, int64_t width, float* dgain, float* dbias, const F& f) {
  const Partition blocks = even_blocks(rows, std::max<int64_t>(16, ceil_div(rows, 32)));
  const Workspace<float> sums(blocks.count * 2 * width);  // [blocks, 2, width]
  parallel_for(blocks, [&](int64_t begin, int64_t end, int64_t block) {
    float* partial = sums.data() + block * 2 * width;
    std::fill_n(partial, 2 * width, 0.f);
    f(begin, end, partial, partial + width);
  });
  std::fill_n(dgain, width, 0.f);
  std::fill_n(dbias, width, 0.f);
  const float* partial = sums.data();
  for (int64_t b = 0; b < blocks.count; ++b, partial += 2 * width)
    for (int64_t i = 0; i < width; ++i) {
      dgain[i] += partial[i];
      dbias[i] += partial[width + i];
    }
}

}  // namespace
}  // namespace isonorm::workshop
