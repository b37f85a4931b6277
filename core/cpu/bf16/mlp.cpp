// The fused feed-forward layer in bf16, like core/cpu/mlp.cpp: a few rows at a time, the hidden entries in the depth
// blocks of the second product. It rounds where separate calls of linear, gelu and linear would round, and has their
// bits.
#include "core/cpu/bf16/products.h"

#include <optional>

#include "core/cpu/bf16/gemm.h"
#include "core/cpu/gelu_form.h"
#include "core/cpu/target.h"

namespace isonorm::kernels::cpu {
namespace {

// A matrix [k, n], packed for products whose left rows are contiguous.
PackedPairs packed(int64_t k, int64_t n, Strided<bf16> b) { return {k, n, b, block_of(k, k % 2 == 0)}; }

// The transpose b [k, n] of w: the packed copy that was kept with w, or packed now.
const PackedPairs& kept_or_packed(const Tensor& w, int64_t k, int64_t n, Strided<bf16> b,
                                  std::optional<PackedPairs>& own) {
  const PackedPairs* kept = k % 2 == 0 ? kept_pairs(w, k, n) : nullptr;
  return kept ? *kept : own.emplace(k, n, b, block_of(k, k % 2 == 0));
}

// c = from + middle(first's a b + its from) b2. If c is null, stops after the middle. middle(row, column, count, h)
// receives `count` hidden entries of a row as bf16, and replaces them by the entries that are multiplied by b2.
template <class Middle>
void pass_through(const PairGemm& first, int64_t out, Rows c, Rows from, const PackedPairs& b1, const PackedPairs& b2,
                  const Middle& middle) {
  const int64_t step = 2 * b2.block();
  parallel_for(passing_rows(first.m, first.n * (first.k + out)), [&](int64_t begin, int64_t end) {
    const FlushSubnormals<float> flush;
    const int64_t rows = end - begin;
    const Workspace<bf16> memory(rows * step);
    const Workspace<float> partial(b2.pairs() > b2.block() ? rows * out : 1);
    const Rows sums(partial.data(), false, out);
    for (int64_t p = 0; p < first.n; p += step) {
      const int64_t count = std::min(step, first.n - p);
      pair_tile(first, b1, begin, rows, p, count, {memory.data(), true, step}, first.from.at(0, p));
      for (int64_t r = 0; r < rows; ++r) {
        bf16* const h = memory.data() + r * step;
        middle(begin + r, p, count, h);
        if (count % 2 != 0) h[count] = 0;
      }
      if (!c.p) continue;
      rows_product(first.by, rows, out, memory.data(), step, count, b2.at(p / 2, 0),
                   p + count == first.n ? c.at(begin, 0) : sums, p == 0 ? from : sums);
    }
  });
}

}  // namespace

void mlp_forward_bf16(const Tensor& y, const Tensor& h, const Tensor& x, const MlpWeights& w, bool tanh_form) {
  const int64_t n = x.size(0), d = x.size(1), wide = w.w1.size(0), out = y.size(1);
  const Strided<bf16> w1{w.w1.data<bf16>(), 1, d}, w2{w.w2.data<bf16>(), 1, wide};
  const PairGemm first{n, wide, d, {x.data<bf16>(), d, 1}, w1, {}, readable(w.b1, 0)};
  bf16* const kept = h.defined() ? h.mutable_data<bf16>() : nullptr;
  std::optional<PackedPairs> own1, own2;
  const PackedPairs &b1 = kept_or_packed(w.w1, d, wide, w1, own1), &b2 = kept_or_packed(w.w2, wide, out, w2, own2);
  visit_forms(tanh_form, [&]<class Form>() {
    pass_through(first, out, writable(y, out), readable(w.b2, 0), b1, b2,
                 [&](int64_t row, int64_t column, int64_t count, bf16* hidden) {
                   if (kept) std::copy_n(hidden, count, kept + row * wide + column);
                   for_masked(count, [&](int64_t i, __mmask16 mask) {
                     const Vec<float> v = load_masked(hidden + i, mask);
                     store_masked(hidden + i, map_lanes<float>(v, [](float a) { return Form::value(a); }), mask);
                   });
                 });
  });
}

void mlp_backward_bf16(const Tensor& dx, const Tensor& dh, const Tensor& activated, const Tensor& h, const Tensor& dy,
                       const MlpWeights& w, bool tanh_form) {
  const int64_t n = dy.size(0), wide = w.w1.size(0), d = w.w1.size(1), out = dy.size(1);
  const Strided<bf16> w2{w.w2.data<bf16>(), wide, 1}, w1{w.w1.data<bf16>(), d, 1};
  const PairGemm first{n, wide, out, {dy.data<bf16>(), out, 1}, w2, {}, {}};
  bf16 *const to_h = dh.mutable_data<bf16>(), *const to_g = activated.mutable_data<bf16>();
  const bf16* const from_h = h.defined() ? h.data<bf16>() : to_h;
  visit_forms(tanh_form, [&]<class Form>() {
    pass_through(first, d, writable(dx, d), {}, packed(out, wide, w2), packed(wide, d, w1),
                 [&](int64_t row, int64_t column, int64_t count, bf16* gradient) {
                   const int64_t at = row * wide + column;
                   for_masked(count, [&](int64_t i, __mmask16 mask) {
                     const auto [value, slope] = gelu_both<Form, float>(load_masked(from_h + at + i, mask));
                     const Vec<float> g = load_masked(gradient + i, mask) * slope;
                     store_masked(to_g + at + i, value, mask);
                     store_masked(gradient + i, g, mask);
                     store_masked(to_h + at + i, g, mask);
                   });
                 });
  });
}

}  // namespace isonorm::kernels::cpu
