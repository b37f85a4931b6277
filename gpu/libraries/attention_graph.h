// Attention as a graph of operations, the form in which cuDNN takes it: plain data, which a test computes by loops.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <vector>

namespace isonorm::gpu {

struct GraphTensor {
  enum class Type : uint8_t { f32, bf16, i32, boolean };
  // The caller's memory; one number that the caller gives; nowhere: what one operation hands to the next.
  enum class Place : uint8_t { memory, number, nowhere };

  std::array<int64_t, 4> size, stride;
  Type type;
  Place place;
};

struct GraphStep {
  enum class Op : uint8_t {
    product,   // out = x y, matrices of the last two dimensions
    multiply,  // out = x y, and so on, by elements; y may be broadcast
    add,
    subtract,
    divide,
    exp,
    log,
    copy,
    row_max,  // over the last dimension
    row_sum,
    row,       // the number of an element's row, whatever x holds
    column,    // of its column
    at_least,  // x >= y
    select,    // z ? x : y
    restride   // the memory of x read with out's size and strides
  };

  Op op;
  int x, y = -1, z = -1;  // tensors, by their number
  int out;
};

struct Graph {
  std::vector<GraphTensor> tensors;  // those of the caller first
  std::vector<GraphStep> steps;
};

// Attention of heads of bf16 without a mask but the causal one.
struct AttentionShape {
  using Strides = std::array<int64_t, 3>;  // of batch, head and row; elements of a row are adjacent

  int64_t batch, heads, queries, keys, size;
  bool causal;
  Strides q, k, v, out;
  Strides dout = {}, dq = {}, dk = {}, dv = {};  // of the backward

  auto operator<=>(const AttentionShape&) const = default;
};

// What the caller gives, in the order of tensors. scale and lowest (what hides a score) are numbers, lse and dots [batch, heads,
// queries] f32. A graph that is not causal has `lowest`, too, and does not use it.
enum class ForwardTensor { q, k, v, out, lse, scale, lowest, count };
enum class BackwardTensor { q, k, v, out, lse, dout, dots, sums, dq, dk, dv, scale, one, lowest, count };

// lse = log sum exp of the scores scale q k^T, out = exp(scores - lse) v, with the maximum of a row taken out first.
Graph attention_forward_graph(const AttentionShape& s);
// dots = the rows' sums of dout out; the weights p again from lse, dv = p^T dout, ds = scale p (dout v^T - dots), dk =
// ds^T q, dq = ds k (Dao et al., 2205.14135, appendix B.2). `sums` [batch, heads, queries, size] f32, zeros before, is
// where dq is summed up if `by_sums`, in an order that is not fixed; else it is not used.
Graph attention_backward_graph(const AttentionShape& s, bool by_sums);

}  // namespace isonorm::gpu
