// Random fills. Compiled only for the base instruction set: without fused multiply-add, every machine gets the same
// bits.
#include "core/kernels/random.h"

#include "core/cpu/philox_lanes.h"
#include "core/formulas/distributions.h"
#include "core/formulas/round_up.h"
#include "core/system/parallel.h"

namespace isonorm::kernels::cpu {
namespace {

constexpr int64_t kGroup = 2 * kPhiloxLanes;  // elements served by 64 blocks of two parts

// Calls store(first, count, bits) for groups of up to 128 elements from element `first` on. bits[e] are the 64 bits of
// element first + e.
template <class F> void for_groups(int64_t n, Generator state, const F& store) {
  parallel_for(ceil_div(n, kGroup), 32, [&](int64_t begin, int64_t end) {
    alignas(64) uint32_t word[4 * kPhiloxLanes];
    alignas(64) uint64_t bits[kGroup];
    for (int64_t group = begin; group < end; ++group) {
      philox_lanes(word, state.seed, state.offset + static_cast<uint64_t>(group * kPhiloxLanes));
      for (int64_t e = 0; e < kGroup; ++e) {
        const uint32_t* low =
            word + e % kPhiloxLanes + e / kPhiloxLanes * kGroup;  // words 0, 1 of part 0; 2, 3 of part 1
        bits[e] = low[0] | static_cast<uint64_t>(low[kPhiloxLanes]) << 32;
      }
      store(group * kGroup, std::min(kGroup, n - group * kGroup), bits);
    }
  });
}

// out[e] = draw(the 64 bits of element e).
template <class F> void fill_each(const Tensor& out, Generator state, const F& draw) {
  using T = decltype(draw(uint64_t{}));
  T* p = out.mutable_data<T>();
  for_groups(out.numel(), state, [&](int64_t at, int64_t count, const uint64_t* bits) {
    for (int64_t k = 0; k < count; ++k) p[at + k] = draw(bits[k]);
  });
}

}  // namespace

void uniform(const Tensor& out, double lo, double hi, Generator state) {
  visit_floating(out.dtype(), "uniform", [&]<class T>() { fill_each(out, state, Uniform<T>(lo, hi)); });
}

void normal(const Tensor& out, double mean, double deviation, Generator state) {
  visit_floating(out.dtype(), "normal", [&]<class T>() {
    T* p = out.mutable_data<T>();
    const Normal<T> scaled{mean, deviation};
    for_groups(out.numel(), state, [&](int64_t at, int64_t count, const uint64_t* bits) {
      alignas(64) double z[kGroup];
#pragma omp simd
      for (int64_t k = 0; k < kPhiloxLanes; ++k)
        box_muller(unit_interval(bits[k]), unit_interval(bits[k + kPhiloxLanes]), z[k], z[k + kPhiloxLanes]);
      for (int64_t k = 0; k < count; ++k) p[at + k] = scaled(z[k]);
    });
  });
}

void exponential(const Tensor& out, Generator state) {
  visit_floating(out.dtype(), "exponential", [&]<class T>() { fill_each(out, state, Exponential<T>{}); });
}

void truncated_normal(const Tensor& out, double mean, double deviation, double lo, double hi, Generator state) {
  visit_floating(out.dtype(), "truncated_normal", [&]<class T>() {
    T* p = out.mutable_data<T>();
    const TruncatedNormal<T> draw(mean, deviation, lo, hi);
    parallel_for(out.numel(), 4096, [&](int64_t begin, int64_t end) {
      for (int64_t e = begin; e < end; ++e) p[e] = draw(state, e);
    });
  });
}

void bernoulli(const Tensor& out, double p, Generator state) {
  visit_all(out.dtype(), [&]<class T>() { fill_each(out, state, Bernoulli<T>{p}); });
}

void random_integers(const Tensor& out, int64_t lo, int64_t hi, Generator state) {
  fill_each(out, state, Integers(lo, hi));
}

void random_permutation(const Tensor& out, Generator state) {
  int64_t* p = out.mutable_data<int64_t>();
  const int64_t n = out.numel();
  for (int64_t i = 0; i < n; ++i) p[i] = i;
  for (int64_t i = n - 1; i > 0; --i) {
    const uint64_t b = philox(state.seed, state.offset + static_cast<uint64_t>(i)).wide(0);
    std::swap(p[i], p[below(static_cast<uint64_t>(i) + 1, b)]);
  }
}

}  // namespace isonorm::kernels::cpu
