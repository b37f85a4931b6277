// Random fills. Compiled for the base instruction set alone: without fused multiply-add every machine gets the same
// bits.
#include "core/kernels/random.h"

#include <cmath>

#include "core/cpu/philox_lanes.h"
#include "core/formulas/math.h"
#include "core/formulas/round_up.h"
#include "core/system/parallel.h"

namespace isonorm::kernels::cpu {
namespace {

constexpr int64_t kGroup = 2 * kPhiloxLanes;  // elements served by 64 blocks of two parts
constexpr double kTwoPi = 6.283185307179586;

// Calls store(first element, count, bits) for groups of up to 128 elements, bits[e] being the 64 bits of element first
// + e.
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

// Two independent standard normal numbers from two uniform ones.
void box_muller(double u0, double u1, double& z0, double& z1) {
  const double radius = std::sqrt(-2 * math::log(1 - u0)), angle = kTwoPi * u1;
  z0 = radius * math::cos(angle);
  z1 = radius * math::sin(angle);
}

// The largest T below hi.
template <class T> T previous(double hi) {
  if constexpr (std::is_same_v<T, bf16>) {
    bf16 t = static_cast<float>(hi);
    if (static_cast<double>(t) < hi) return t;
    // One step down: towards 0 the bits count down, away from it up; below 0 comes the smallest negative number.
    t.bits = static_cast<uint16_t>(hi > 0 ? t.bits - 1 : hi < 0 ? t.bits + 1 : 0x8001);
    return t;
  } else {
    const T t = static_cast<T>(hi);
    return static_cast<double>(t) < hi ? t : std::nextafter(t, -std::numeric_limits<T>::infinity());
  }
}

}  // namespace

void uniform(const Tensor& out, double lo, double hi, Generator state) {
  visit_floating(out.dtype(), "uniform", [&]<class T>() {
    T* p = out.mutable_data<T>();
    const T top = previous<T>(hi);
    for_groups(out.numel(), state, [&](int64_t at, int64_t count, const uint64_t* bits) {
      for (int64_t k = 0; k < count; ++k) {
        const T v = static_cast<T>(static_cast<acc_t<T>>(lo + (hi - lo) * unit_interval(bits[k])));
        p[at + k] = static_cast<double>(v) < hi ? v : top;
      }
    });
  });
}

void normal(const Tensor& out, double mean, double deviation, Generator state) {
  visit_floating(out.dtype(), "normal", [&]<class T>() {
    T* p = out.mutable_data<T>();
    for_groups(out.numel(), state, [&](int64_t at, int64_t count, const uint64_t* bits) {
      alignas(64) double z[kGroup];
#pragma omp simd
      for (int64_t k = 0; k < kPhiloxLanes; ++k)
        box_muller(unit_interval(bits[k]), unit_interval(bits[k + kPhiloxLanes]), z[k], z[k + kPhiloxLanes]);
      for (int64_t k = 0; k < count; ++k) p[at + k] = static_cast<T>(static_cast<acc_t<T>>(mean + deviation * z[k]));
    });
  });
}

void exponential(const Tensor& out, Generator state) {
  visit_floating(out.dtype(), "exponential", [&]<class T>() {
    T* p = out.mutable_data<T>();
    for_groups(out.numel(), state, [&](int64_t at, int64_t count, const uint64_t* bits) {
      for (int64_t k = 0; k < count; ++k)
        p[at + k] = static_cast<T>(static_cast<acc_t<T>>(-math::log(1 - unit_interval(bits[k]))));
    });
  });
}

void truncated_normal(const Tensor& out, double mean, double deviation, double lo, double hi, Generator state) {
  visit_floating(out.dtype(), "truncated_normal", [&]<class T>() {
    T* p = out.mutable_data<T>();
    // The outermost values of T inside: rounding does not lead out of the interval.
    const double inf = std::numeric_limits<double>::infinity();
    const double low = -static_cast<double>(previous<T>(std::nextafter(-lo, inf)));
    const double high = static_cast<double>(previous<T>(std::nextafter(hi, inf)));
    check(low <= high, "truncated_normal: no ", out.dtype(), " lies in [", lo, ", ", hi, ']');
    parallel_for(out.numel(), 4096, [&](int64_t begin, int64_t end) {
      for (int64_t e = begin; e < end; ++e) {
        bool found = false;
        for (uint64_t subsequence = 0; !found; ++subsequence) {
          const PhiloxBlock b = philox(state.seed, state.offset + static_cast<uint64_t>(e), subsequence);
          double z[2];
          box_muller(unit_interval(b.wide(0)), unit_interval(b.wide(1)), z[0], z[1]);
          for (int i = 0; i < 2 && !found; ++i) {
            const double v = mean + deviation * z[i];
            found = v >= lo && v <= hi;
            if (found) p[e] = static_cast<T>(static_cast<acc_t<T>>(std::clamp(v, low, high)));
          }
        }
      }
    });
  });
}

void bernoulli(const Tensor& out, double p, Generator state) {
  visit_all(out.dtype(), [&]<class T>() {
    T* po = out.mutable_data<T>();
    for_groups(out.numel(), state, [&](int64_t at, int64_t count, const uint64_t* bits) {
      for (int64_t k = 0; k < count; ++k) po[at + k] = static_cast<T>(unit_interval(bits[k]) < p ? 1 : 0);
    });
  });
}

void random_integers(const Tensor& out, int64_t lo, int64_t hi, Generator state) {
  const uint64_t range = static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo);
  int64_t* p = out.mutable_data<int64_t>();
  for_groups(out.numel(), state, [&](int64_t at, int64_t count, const uint64_t* bits) {
    for (int64_t k = 0; k < count; ++k)
      p[at + k] = static_cast<int64_t>(static_cast<uint64_t>(lo) + below(range, bits[k]));
  });
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
