// Step 3: f32, and several partial sums.
//
// A sum of floats is a chain: each addition waits some cycles for the one before it. The compiler must not split it
// into several chains, because another order rounds differently. The source code therefore does: it has kSums partial
// sums, which the compiler adds in whole registers. They also make f32 accurate enough, because rounding errors grow
// with the length of a chain. Loops without sums need no help.
//
// Like the library's kernels, the file is compiled once per instruction set (core/cpu/target.h). It is timed twice: for
// x86-64 as of 2003, with registers of 4 floats, and for the best instruction set of this machine.
#include <algorithm>
#include <cmath>

#include "core/cpu/target.h"
#include "examples/workshop/steps.h"

namespace isonorm::workshop::sums {
namespace {

constexpr int64_t kSums = 64;  // four registers of AVX-512

// Sum of f(i) over a row.
template <class F> ISO_HD float sum(int64_t n, const F& f) {
  float partial[kSums] = {}, total = 0;
  int64_t i = 0;
  for (; i + kSums <= n; i += kSums)
    for (int64_t k = 0; k < kSums; ++k) partial[k] += f(i + k);
  for (; i < n; ++i) partial[i % kSums] += f(i);
  for (const float p : partial) total += p;
  return total;
}

}  // namespace

template <Isa I> void forward(const NormSpec& spec, const NormOutputs& out, const NormInputs& in) {
  const int64_t rows = in.x.size(0), w = in.x.size(1);
  const float d = static_cast<float>(w), eps = static_cast<float>(spec.eps);
  const float *gain = in.gain.data<float>(), *bias = in.bias.data<float>();
  float* stats = out.stats.mutable_data<float>();
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = in.x.data<float>() + r * w;
    float* y = out.y.mutable_data<float>() + r * w;
    const float mean = sum(w, [&](int64_t i) { return x[i]; }) / d;
    const float squares = sum(w, [&](int64_t i) { return (x[i] - mean) * (x[i] - mean); });
    const float scale = 1 / std::sqrt(squares / d + eps);
    for (int64_t i = 0; i < w; ++i) y[i] = (x[i] - mean) * scale * gain[i] + bias[i];
    stats[2 * r] = mean;
    stats[2 * r + 1] = scale;
  }
}

template <Isa I> void backward(const NormSpec&, const NormGradients& out, const NormSaved& in) {
  const int64_t rows = in.x.size(0), w = in.x.size(1);
  const float d = static_cast<float>(w);
  const float *gain = in.gain.data<float>(), *stats = in.stats.data<float>();
  float *dgain = out.dgain.mutable_data<float>(), *dbias = out.dbias.mutable_data<float>();
  std::fill_n(dgain, w, 0.f);
  std::fill_n(dbias, w, 0.f);
  for (int64_t r = 0; r < rows; ++r) {
    const float *x = in.x.data<float>() + r * w, *dy = in.dy.data<float>() + r * w;
    float* dx = out.dx.mutable_data<float>() + r * w;
    const float mean = stats[2 * r], scale = stats[2 * r + 1];
    const auto normalized = [&](int64_t i) { return (x[i] - mean) * scale; };
    const float mean_h = sum(w, [&](int64_t i) { return dy[i] * gain[i]; }) / d;
    const float mean_hx = sum(w, [&](int64_t i) { return dy[i] * gain[i] * normalized(i); }) / d;
    for (int64_t i = 0; i < w; ++i) {
      dgain[i] += dy[i] * normalized(i);
      dbias[i] += dy[i];
    }
    for (int64_t i = 0; i < w; ++i) dx[i] = (dy[i] * gain[i] - mean_h - normalized(i) * mean_hx) * scale;
  }
}

template void forward<kTarget>(const NormSpec&, const NormOutputs&, const NormInputs&);
template void backward<kTarget>(const NormSpec&, const NormGradients&, const NormSaved&);

}  // namespace isonorm::workshop::sums
