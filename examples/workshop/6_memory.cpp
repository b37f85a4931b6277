// Step 6: memory is the remaining limit (core/cpu/nontemporal.h).
//
// An ordinary store first reads the cache line that it overwrites: for a result too large for the caches this is a
// third of the forward's bytes and a quarter of the backward's. Large results are stored past the caches. While a row
// goes through its loops in cache, memory would be idle, because the processor prefetches only in the first loop: so
// each loop prefetches a part of the next row.
#include <cmath>

#include "core/cpu/nontemporal.h"
#include "examples/workshop/5_threads.h"
#include "examples/workshop/steps.h"

namespace isonorm::workshop::memory {
namespace {

using V = Vec<float>;

// Prefetches a share of the next row: called in loop `pass` of `passes` at element i.
ISO_HD void bring_next(const float* row, int64_t w, int64_t i, int pass, int passes) {
  bring(row + w + (pass * w + i) / passes);
}

ISO_HD void forward_row(float* y, float* stats, const float* x, const float* gain, const float* bias, int64_t w,
                        float eps, bool nontemporal) {
  const float d = static_cast<float>(w);
  const auto [sum] = sum_row<float, 1>(w, [&](int64_t i, auto lanes, V* acc) {
    bring_next(x, w, i, 0, 3);
    acc[0] += lanes.keep(lanes.load(x + i));
  });
  const float mean = sum / d;
  const auto [squares] = sum_row<float, 1>(w, [&](int64_t i, auto lanes, V* acc) {
    bring_next(x, w, i, 1, 3);
    const V v = lanes.keep(lanes.load(x + i) - mean);
    acc[0] += v * v;
  });
  const float scale = 1 / std::sqrt(squares / d + eps);
  for_results<float>(nontemporal, y, w, [&](int64_t i, auto lanes) {
    bring_next(x, w, i, 2, 3);
    lanes.store(y + i, (lanes.load(x + i) - mean) * scale * lanes.load(gain + i) + lanes.load(bias + i));
  });
  stats[0] = mean;
  stats[1] = scale;
}

ISO_HD void backward_row(float* dx, float* dgain, float* dbias, const float* dy, const float* x, const float* stats,
                         const float* gain, int64_t w, bool nontemporal) {
  const float d = static_cast<float>(w), mean = stats[0], scale = stats[1];
  const auto [sum_h, sum_hx] = sum_row<float, 2>(w, [&](int64_t i, auto lanes, V* acc) {
    bring_next(x, w, i, 0, 2);
    bring_next(dy, w, i, 0, 2);
    const V g = lanes.keep(lanes.load(dy + i)), normalized = (lanes.load(x + i) - mean) * scale;
    const V h = g * lanes.load(gain + i);
    acc[0] += h;
    acc[1] += h * normalized;
    lanes.store(dgain + i, lanes.load(dgain + i) + g * normalized);
    lanes.store(dbias + i, lanes.load(dbias + i) + g);
  });
  const float mean_h = sum_h / d, mean_hx = sum_hx / d;
  for_results<float>(nontemporal, dx, w, [&](int64_t i, auto lanes) {
    bring_next(x, w, i, 1, 2);
    bring_next(dy, w, i, 1, 2);
    const V normalized = (lanes.load(x + i) - mean) * scale, h = lanes.load(dy + i) * lanes.load(gain + i);
    lanes.store(dx + i, (h - mean_h - normalized * mean_hx) * scale);
  });
}

}  // namespace

template <Isa I> void forward(const NormSpec& spec, const NormOutputs& out, const NormInputs& in) {
  const int64_t rows = in.x.size(0), w = in.x.size(1);
  const float *x = in.x.data<float>(), *gain = in.gain.data<float>(), *bias = in.bias.data<float>();
  float *y = out.y.mutable_data<float>(), *stats = out.stats.mutable_data<float>();
  const bool nontemporal = passes_caches<float>(out.y, w);
  parallel_for(row_blocks(rows, w), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      forward_row(y + r * w, stats + 2 * r, x + r * w, gain, bias, w, static_cast<float>(spec.eps), nontemporal);
    fence_nontemporal(nontemporal);
  });
}

template <Isa I> void backward(const NormSpec&, const NormGradients& out, const NormSaved& in) {
  const int64_t rows = in.x.size(0), w = in.x.size(1);
  const float *x = in.x.data<float>(), *dy = in.dy.data<float>(), *stats = in.stats.data<float>();
  const float* gain = in.gain.data<float>();
  float *dx = out.dx.mutable_data<float>(), *to_gain = out.dgain.mutable_data<float>(),
        *to_bias = out.dbias.mutable_data<float>();
  const bool nontemporal = passes_caches<float>(out.dx, w);
  summed_blocks(rows, w, to_gain, to_bias, [&](int64_t begin, int64_t end, float* dgain, float* dbias) {
    for (int64_t r = begin; r < end; ++r)
      backward_row(dx + r * w, dgain, dbias, dy + r * w, x + r * w, stats + 2 * r, gain, w, nontemporal);
    fence_nontemporal(nontemporal);
  });
}

template void forward<kTarget>(const NormSpec&, const NormOutputs&, const NormInputs&);
template void backward<kTarget>(const NormSpec&, const NormGradients&, const NormSaved&);

}  // namespace isonorm::workshop::memory
