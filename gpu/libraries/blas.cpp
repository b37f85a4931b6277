#include "gpu/libraries/blas.h"

#include <cstdlib>
#include <cstring>

#include "core/kernels/matmul.h"
#include "core/kernels/strided.h"
#include "core/memory/bytes.h"
#include "gpu/dynamic.h"
#include "gpu/libraries/blas_lt.h"
#include "gpu/slots.h"

namespace isonorm::gpu {
namespace {

// The strides of a tensor's last two dimensions. The stride of a dimension with one element means nothing; it is set to
// the value that a library expects.
MatrixStrides strides_of(const Tensor& t) {
  const int64_t rows = t.size(-2), columns = t.size(-1), sr = t.strides().v[t.rank() - 2],
                sc = t.strides().v[t.rank() - 1];
  if ((sc == 1 || columns == 1) && (rows == 1 || sr >= columns)) return {rows == 1 ? columns : sr, 1};
  return {1, columns == 1 ? rows : sc};
}

Batch batch_of(const Tensor& out, const Tensor& a, const Tensor& b) {
  Dims shape, sa, sb;
  for (int d = 0; d < out.rank() - 2; ++d) {
    shape.push_back(out.shape().v[d]);
    sa.push_back(a.strides().v[d]);
    sb.push_back(b.strides().v[d]);
  }
  const Loop<2> loop(shape, {sa, sb});
  Batch batch{.rank = loop.rank, .count = loop.count};
  std::copy_n(loop.size, loop.rank, batch.size);
  std::copy_n(loop.stride[0], loop.rank, batch.a);
  std::copy_n(loop.stride[1], loop.rank, batch.b);
  return batch;
}

}  // namespace

bool fused_product(const Product& p, const Operands& o, const Stream& stream) { return lt_product(p, o, stream); }

void product(const Product& p, const Operands& o, const Stream& stream) {
  if (lt_product(p, o, stream)) return;
  if (p.bias && p.in == p.out && cublas_lt()) {  // no epilogue: the product is added to the bias, and also rounded once
    Product added = p;
    Operands to_bias = o;
    added.bias = false, added.add = true;
    to_bias.bias = nullptr;
    fill_with_bias(p, o, stream);
    if (lt_product(added, to_bias, stream)) return;
  }
  own_product(p, o, stream);
}

std::atomic<bool>& fuses_bias_sums() {
  static std::atomic<bool> fuses = [] {
    const char* s = std::getenv("ISONORM_GPU_BGRADB");
    check(!s || !*s || std::strcmp(s, "0") == 0 || std::strcmp(s, "1") == 0, "ISONORM_GPU_BGRADB: '", s ? s : "",
          "' is neither 0 nor 1");
    return !s || *s != '0';
  }();
  return fuses;
}

void matmul(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& from) {
  if (out.numel() == 0) return;
  void* const to = mutable_bytes_of(out);
  const void* const base = from.defined() ? bytes_of(from) : nullptr;
  const bool add = base && base == to;
  const Product p{.m = out.size(-2),
                  .n = out.size(-1),
                  .k = a.size(-1),
                  .a = strides_of(a),
                  .b = strides_of(b),
                  .batch = batch_of(out, a, b),
                  .in = a.dtype(),
                  .out = out.dtype(),
                  .bias = base && !add,
                  .add = add};
  product(p, {to, bytes_of(a), bytes_of(b), p.bias ? base : nullptr}, stream_of(out));
}

void weight_gradient(const Tensor& dw, const Tensor& db, const Tensor& dy, const Tensor& x, bool add) {
  const int64_t rows = dy.size(0), m = dy.size(1), n = x.size(1);
  const bool sums = db.defined() && m > 0;
  if (dw.defined() && dw.numel() > 0) {
    const Product p{
        .m = m, .n = n, .k = rows, .a = {1, m}, .b = {n, 1}, .in = dy.dtype(), .out = dw.dtype(), .add = add};
    const Operands o{mutable_bytes_of(dw), bytes_of(dy), bytes_of(x)};
    if (sums && !add && db.dtype() == dw.dtype() && fuses_bias_sums()) {
      Product with_sums = p;
      Operands and_sums = o;
      with_sums.epilogue = Epilogue::row_sums;
      with_sums.aux = true;
      and_sums.aux = mutable_bytes_of(db);
      if (fused_product(with_sums, and_sums, stream_of(dw))) return;
    }
    product(p, o, stream_of(dw));
  }
  if (sums) column_sums(db, dy, add);
}

void keep_packed(const Tensor&) {}

}  // namespace isonorm::gpu
