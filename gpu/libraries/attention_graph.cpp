#include "gpu/libraries/attention_graph.h"

#include <utility>

namespace isonorm::gpu {
namespace {

using Type = GraphTensor::Type;
using Op = GraphStep::Op;
using Size = std::array<int64_t, 4>;

// Builds a graph; every function returns the number of a tensor.
class Builder {
 public:
  explicit Builder(const AttentionShape& s) : s_(s), scores_{s.batch, s.heads, s.queries, s.keys} {}

  // Rows of heads in the caller's memory, and the same memory transposed: [batch, heads, size, rows].
  int heads(int64_t rows, const AttentionShape::Strides& t) {
    return memory({s_.batch, s_.heads, rows, s_.size}, {t[0], t[1], t[2], 1}, Type::bf16);
  }
  int heads_transposed(int64_t rows, const AttentionShape::Strides& t) {
    return memory({s_.batch, s_.heads, s_.size, rows}, {t[0], t[1], 1, t[2]}, Type::bf16);
  }
  int numbers(int64_t columns) {  // f32 numbers for each query
    const Size size{s_.batch, s_.heads, s_.queries, columns};
    return memory(size, contiguous(size), Type::f32);
  }
  int number() {
    const Size one{1, 1, 1, 1};
    return tensor({one, contiguous(one), Type::f32, GraphTensor::Place::number});
  }

  void step(Op op, int out, int x, int y = -1, int z = -1) { graph_.steps.push_back({op, x, y, z, out}); }
  // Results: of the scores' shape; one number per query; one per element of q; the scores transposed.
  int score(Op op, int x, int y = -1, int z = -1, Type type = Type::f32) { return made(scores_, type, op, x, y, z); }
  int row(Op op, int x, int y = -1) { return made({s_.batch, s_.heads, s_.queries, 1}, Type::f32, op, x, y, -1); }
  int wide(Op op, int x, int y) { return made({s_.batch, s_.heads, s_.queries, s_.size}, Type::f32, op, x, y, -1); }
  int transposed(int x) {
    const auto [b, h, q, k] = scores_;
    return restrided({b, h, k, q}, {h * q * k, q * k, 1, k}, x);
  }
  int restrided(const Size& size, const Size& stride, int x) {
    const int out = tensor({size, stride, Type::bf16, GraphTensor::Place::nowhere});
    step(Op::restride, out, x);
    return out;
  }
  // The scores x, with `lowest` for keys after the query.
  int causal(int x, int lowest) {
    const int row = score(Op::row, x, -1, -1, Type::i32), column = score(Op::column, x, -1, -1, Type::i32);
    return score(Op::select, x, lowest, score(Op::at_least, row, column, -1, Type::boolean));
  }

  Graph take() { return std::move(graph_); }

 private:
  static Size contiguous(const Size& n) { return {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1}; }
  int tensor(const GraphTensor& t) {
    graph_.tensors.push_back(t);
    return static_cast<int>(graph_.tensors.size()) - 1;
  }
  int memory(const Size& size, const Size& stride, Type type) {
    return tensor({size, stride, type, GraphTensor::Place::memory});
  }
  int made(const Size& size, Type type, Op op, int x, int y, int z) {
    const int out = tensor({size, contiguous(size), type, GraphTensor::Place::nowhere});
    step(op, out, x, y, z);
    return out;
  }

  const AttentionShape& s_;
  const Size scores_;
  Graph graph_;
};

}  // namespace

Graph attention_forward_graph(const AttentionShape& s) {
  Builder b(s);
  const int q = b.heads(s.queries, s.q), k = b.heads_transposed(s.keys, s.k), v = b.heads(s.keys, s.v);
  const int out = b.heads(s.queries, s.out), lse = b.numbers(1), scale = b.number(), lowest = b.number();
  int x = b.score(Op::multiply, b.score(Op::product, q, k), scale);
  if (s.causal) x = b.causal(x, lowest);
  const int top = b.row(Op::row_max, x);
  const int e = b.score(Op::exp, b.score(Op::subtract, x, top)), sum = b.row(Op::row_sum, e);
  b.step(Op::add, lse, top, b.row(Op::log, sum));
  b.step(Op::product, out, b.score(Op::divide, e, sum, -1, Type::bf16), v);
  return b.take();
}

Graph attention_backward_graph(const AttentionShape& s, bool by_sums) {
  Builder b(s);
  const int q = b.heads(s.queries, s.q), k = b.heads_transposed(s.keys, s.k), v = b.heads_transposed(s.keys, s.v);
  const int out = b.heads(s.queries, s.out), lse = b.numbers(1), dout = b.heads(s.queries, s.dout);
  const int dots = b.numbers(1), sums = b.numbers(s.size);
  const int dq = b.heads(s.queries, s.dq), dk = b.heads(s.keys, s.dk), dv = b.heads(s.keys, s.dv);
  const int scale = b.number(), one = b.number(), lowest = b.number();

  b.step(Op::multiply, dots, b.row(Op::row_sum, b.wide(Op::multiply, dout, out)), one);
  int x = b.score(Op::subtract, b.score(Op::multiply, b.score(Op::product, q, k), scale), lse);
  if (s.causal) x = b.causal(x, lowest);
  const int p = b.score(Op::exp, x);
  b.step(Op::product, dv, b.transposed(p), dout);
  const int dp = b.score(Op::subtract, b.score(Op::product, dout, v), dots);
  const int ds = b.score(Op::multiply, b.score(Op::multiply, dp, p), scale, -1, Type::bf16);
  b.step(Op::product, dk, b.transposed(ds), q);
  const int rows_of_k = b.restrided({s.batch, s.heads, s.keys, s.size}, {s.k[0], s.k[1], s.k[2], 1}, k);
  b.step(Op::product, by_sums ? sums : dq, ds, rows_of_k);
  if (by_sums) b.step(Op::copy, dq, sums);
  return b.take();
}

}  // namespace isonorm::gpu
