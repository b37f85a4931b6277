#include "core/cpu/bf16/products.h"

#include "core/cpu/bf16/gemm.h"
#include "core/cpu/target.h"

namespace isonorm::kernels::cpu {

void matmul_bf16(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& from, Multiplier by) {
  const int64_t n = out.size(-1);
  const Rows c = writable(out, n), base = readable(from, 0);
  const PairGemm whole{out.size(-2), n, a.size(-1), operand<bf16>(a), operand<bf16>(b), c, base, nullptr, false, by};
  if (out.rank() == 2 && reads_in_place(whole) && whole.b.row == 1 && whole.b.column == whole.k)
    if (const PackedPairs* kept = kept_pairs(b, whole.k, n)) return pair_gemm(whole, *kept);
  for_batch(out, a, b, [&](int64_t to, int64_t left, int64_t right) {
    PairGemm g = whole;
    g.c = c.at(0, to);
    g.a.p += left;
    g.b.p += right;
    if (base.p == c.p) g.from = g.c;
    pair_gemm(g);
  });
}

void keep_packed_bf16(const Tensor& w) {
  const int64_t n = w.size(0), k = w.size(1), block = block_of(k, k % 2 == 0);
  if (k % 2 == 0)
    w.impl().storage->keep(std::make_shared<PackedPairs>(k, n, Strided<bf16>{w.data<bf16>(), 1, k}, block));
}

void weight_gradient_bf16(const Tensor& dw, const Tensor& db, const Tensor& dy, const Tensor& x, bool add,
                          Multiplier by) {
  const int64_t rows = dy.size(0), m = dy.size(1), n = dw.defined() ? x.size(1) : 0;
  const Rows c = writable(dw, n), d = writable(db, 0);
  const Workspace<float> rounded(d.narrow ? m : 0);
  float* const sums = d.narrow ? rounded.data() : static_cast<float*>(d.p);
  const auto move = [m](const auto* from, auto* to) {
    for_masked(m, [&](int64_t i, __mmask16 mask) { store_masked(to + i, load_masked(from + i, mask), mask); });
  };
  if (d.narrow && add) move(static_cast<const bf16*>(d.p), sums);
  if (rows > 0) {
    pair_gemm({m, n, rows, {dy.data<bf16>(), 1, m}, {x.data<bf16>(), n, 1}, c, add ? c : Rows(), sums, add, by});
  } else if (!add) {
    if (c.p) std::memset(c.p, 0, dw.numel() * size_of(dw.dtype()));
    if (sums) std::fill_n(sums, m, 0.f);
  }
  if (d.narrow) move(sums, static_cast<bf16*>(d.p));
}

}  // namespace isonorm::kernels::cpu
