// Attention as a graph of operations, as cuDNN takes it: plain data, which a test evaluates by loops.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <vector>

namespace isonorm::gpu {

struct GraphTensor {
  enum class Type : uint8_t { f32, bf16, i32, boolean };
  // memory: the caller's; number: a single number from the caller; nowhere: passed from one operation to the next.
  enum class Place : uint8_t { memory, number, nowhere };

  std::array<int64_t, 4> size, stride;
  Type type;
  Place place;
};

struct GraphStep {
  enum class Op : uint8_t {
    product,   // out = x y, matrices of the last two dimensions
    multiply,  // out = x y, and so on, elementwise; y may be broadcast
    add,
    subtract,
    divide,
    exp,
    log,
    copy,
    row_max,  // over the last dimension
    row_sum,
    row,       // the index of an element's row; the values of x do not matter
    column,    // the index of its column
    at_least,  // x >= y
    select,    // z ? x : y
    restride   // the memory of x read with out's size and strides
  };

  Op op;
  int x, y = -1, z = -1;  // tensors, by their number
  int out;
};

struct Graph {
  std::vector<GraphTensor> tensors;  // the caller's tensors first
  std::vector<GraphStep> steps;
};

// Attention of bf16 heads without a mask except the causal one.
struct AttentionShape {
  using Strides = std::array<int64_t, 3>;  // of batch, head and row; elements of a row are adjacent

  int64_t batch, heads, queries, keys, size;
  bool causal;
  Strides q, k, v, out;
  Strides dout = {}, dq = {}, dk = {}, dv = {};  // backward only

  auto operator<=>(const AttentionShape&) const = default;
};

// The caller's tensors in the order of Graph::tensors. scale, one and lowest (the score of hidden keys) are single
// numbers; lse and dots are f32 [batch, heads, queries]. A graph that is not causal has `lowest`, too, and does not use
// it.
enum class ForwardTensor { q, k, v, out, lse, scale, lowest, count };
enum class BackwardTensor { q, k, v, out, lse, dout, dots, sums, dq, dk, dv, scale, one, lowest, count };

// lse = log sum exp of the scores scale q k^T, out = exp(scores - lse) v, with the maximum of each row subtracted
// first.
Graph attention_forward_graph(const AttentionShape& s);
// dots: the sum over each row of dout * out (elementwise). The weights p are computed again from lse; dv = p^T dout, ds
// = scale p (dout v^T - dots), dk = ds^T q, dq = ds k (Dao et al., 2205.14135, appendix B.2). If `by_sums`, dq is
// accumulated, in no fixed order, in `sums` (f32, [batch, heads, queries, size]), which must be zero on entry; else
// `sums` is unused.
Graph attention_backward_graph(const AttentionShape& s, bool by_sums);

}  // namespace isonorm::gpu
