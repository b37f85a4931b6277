#include "equivalence/causes/moved_results.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string_view>

#include "autograd/ops/create.h"
#include "core/formulas/philox.h"
#include "core/kernels/copy.h"
#include "core/system/parallel.h"
#include "core/view.h"

namespace isonorm::equivalence {
namespace {

constexpr int64_t kDirections = 128;  // of a draw
constexpr auto kBit = [] {
  std::array<uint32_t, 32> bit{};
  for (int k = 0; k < 32; ++k) bit[k] = uint32_t{1} << k;  // no instruction of SSE2 shifts by several distances
  return bit;
}();

template <class T>  // 0x1.fep127: of bf16
constexpr acc_t<T> kLargest = sizeof(T) == 2 ? acc_t<T>(0x1.fep127) : std::numeric_limits<acc_t<T>>::max();

// True if an op may have rounded to a number of this size: it is not whole, or so large that all numbers are.
template <class T, class A> bool is_rounded(A size) {
  constexpr A whole = sizeof(A) == 8 ? A(0x1p52) : A(0x1p23);  // from here on all numbers of A are whole
  return ((size + whole) - whole != size) | (size * A(epsilon(dtype_of<T>)) >= 1);
}

// Moves each number to its neighbour that is further from zero, or to the one that is closer to it. Numbers that are 0,
// not finite, the largest of T (a mask, not a result of rounding) or not is_rounded() stay.
template <class T> void move_each(T* numbers, int64_t count, uint64_t seed, uint64_t stream) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
  using Step = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  using A = acc_t<T>;
  parallel_for(ceil_div(count, kDirections), 64, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) {
      const auto draw = philox(seed, static_cast<uint64_t>(group), stream);
      int32_t step[kDirections];
      for (int w = 0; w < 4; ++w)
        for (int k = 0; k < 32; ++k) step[32 * w + k] = draw.word[w] & kBit[k] ? 1 : -1;
      const int64_t first = group * kDirections, here = std::min(kDirections, count - first);
#pragma omp simd
      for (int64_t j = 0; j < here; ++j) {  // without branches, for vectors
        T& number = numbers[first + j];
        const A size = std::abs(A(number));
        const Step drawn = step[j];
        Step taken = size > 0 ? drawn : 0;
        taken = size < kLargest<T> ? taken : 0;
        taken = is_rounded<T>(size) ? taken : 0;
        number = std::bit_cast<T>(static_cast<Bits>(std::bit_cast<Bits>(number) + static_cast<Bits>(taken)));
      }
    }
  });
}

}  // namespace

MovedResults::MovedResults(uint64_t seed)
    : seed_(seed), watch_([this](const autograd::Node& op, std::span<const Tensor* const> results) {
        if (op.is_view) return;
        for (const Tensor* result : results) move(op.name, *result);
      }) {}

void MovedResults::move(const char* op, const Tensor& result) {
  const std::string_view name = op;
  if (!is_floating(result.dtype()) || name == "amax" || name == "amin") return;
  // Not a stream of a parameter: move_by_one_ulp() draws these with the same seed.
  const uint64_t stream = (uint64_t{1} << 32) + ops_++;
  const bool here = result.device() == kCpu && result.is_contiguous();
  const Tensor values = here ? result : detached::contiguous(to(detach(result), kCpu));
  visit_floating(result.dtype(), name.data(),
                 [&]<class T>() { move_each(values.mutable_data<T>(), values.numel(), seed_, stream); });
  if (!here) kernels::copy(result, to(values, result.device()));
}

}  // namespace isonorm::equivalence
