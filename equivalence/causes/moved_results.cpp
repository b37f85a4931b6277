#include "equivalence/causes/moved_results.h"

#include <bit>
#include <cmath>
#include <string_view>

#include "autograd/ops/copy.h"
#include "autograd/ops/create.h"
#include "core/formulas/philox.h"
#include "core/kernels/copy.h"

namespace isonorm::equivalence {
namespace {

// A number that an op may have rounded: finite, and no whole number below `1 / epsilon` (above that, all numbers are
// whole).
bool is_rounded(double x, double epsilon) {
  return std::isfinite(x) && (x != std::trunc(x) || std::abs(x) * epsilon >= 1);
}

// The neighbour of x that is further from zero, or the one that is closer to it. x is finite and not 0.
template <class T> T neighbour(T x, bool further) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
  const auto bits = std::bit_cast<Bits>(x);
  return std::bit_cast<T>(static_cast<Bits>(further ? bits + 1 : bits - 1));
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
  visit_floating(result.dtype(), name.data(), [&]<class T>() {
    std::vector<T> values = result.to_vector<T>();
    for (size_t i = 0; i < values.size(); i += 128) {  // a draw has 128 bits
      const auto draw = philox(seed_, i / 128, stream);
      for (size_t j = i; j < std::min(i + 128, values.size()); ++j)
        if (is_rounded(static_cast<double>(values[j]), epsilon(result.dtype())))
          values[j] = neighbour(values[j], draw.word[(j - i) / 32] >> (j % 32) & 1);
    }
    kernels::copy(result, to(from_vector(values, result.shape()), result.device()));
  });
}

}  // namespace isonorm::equivalence
