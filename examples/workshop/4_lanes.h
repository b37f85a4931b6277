// Step 4: a row in vector registers that the source names (core/cpu/lanes.h). They are the compilers' vector types, not
// intrinsics: the same lines become SSE2, AVX2 and AVX-512.
//
// This has two advantages over loops that the compiler vectorises. There is no scalar tail: a last register overlaps
// the one before it, and lanes.keep() is 0 for elements that are summed already. And two sums and two results per
// element share one pass, which plain loops cannot express.
#pragma once

#include <cmath>

#include "core/cpu/lanes.h"
#include "examples/workshop/steps.h"

namespace isonorm::workshop {
namespace {  // internal: compiled for each instruction set

using V = Vec<float>;

// A row of the forward; stats is the row's pair (mean, 1/r).
ISO_HD void forward_row(float* y, float* stats, const float* x, const float* gain, const float* bias, int64_t w,
                        float eps) {
  const float d = static_cast<float>(w);
  const auto [sum] =
      sum_row<float, 1>(w, [&](int64_t i, auto lanes, V* acc) { acc[0] += lanes.keep(lanes.load(x + i)); });
  const float mean = sum / d;
  const auto [squares] = sum_row<float, 1>(w, [&](int64_t i, auto lanes, V* acc) {
    const V v = lanes.keep(lanes.load(x + i) - mean);
    acc[0] += v * v;
  });
  const float scale = 1 / std::sqrt(squares / d + eps);
  for_lanes<float>(w, [&](int64_t i, auto lanes) {
    lanes.store(y + i, (lanes.load(x + i) - mean) * scale * lanes.load(gain + i) + lanes.load(bias + i));
  });
  stats[0] = mean;
  stats[1] = scale;
}

// A row of the backward. Adds to dgain and dbias.
ISO_HD void backward_row(float* dx, float* dgain, float* dbias, const float* dy, const float* x, const float* stats,
                         const float* gain, int64_t w) {
  const float d = static_cast<float>(w), mean = stats[0], scale = stats[1];
  const auto [sum_h, sum_hx] = sum_row<float, 2>(w, [&](int64_t i, auto lanes, V* acc) {
    const V g = lanes.keep(lanes.load(dy + i)), normalized = (lanes.load(x + i) - mean) * scale;
    const V h = g * lanes.load(gain + i);
    acc[0] += h;
    acc[1] += h * normalized;
    lanes.store(dgain + i, lanes.load(dgain + i) + g * normalized);
    lanes.store(dbias + i, lanes.load(dbias + i) + g);
  });
  const float mean_h = sum_h / d, mean_hx = sum_hx / d;
  for_lanes<float>(w, [&](int64_t i, auto lanes) {
    const V normalized = (lanes.load(x + i) - mean) * scale, h = lanes.load(dy + i) * lanes.load(gain + i);
    lanes.store(dx + i, (h - mean_h - normalized * mean_hx) * scale);
  });
}

}  // namespace
}  // namespace isonorm::workshop
