#include "nn/linear.h"

#include <cmath>

#include "autograd/ops/create.h"
#include "autograd/ops/index.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "autograd/ops/shared.h"
#include "core/view.h"
#include "nn/init.h"
#include "nn/module_scope.h"

namespace isonorm::nn {

namespace {

// Draws a tensor of a linear map in -> out, uniform in +-1/sqrt(in).
Tensor draw_linear(const Dims& shape, int64_t in, int64_t out) {
  check(in > 0 && out > 0, "linear: sizes ", in, " -> ", out, " must be positive");
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  return init::uniform(shape, -bound, bound);
}

}  // namespace

Linear::Linear(int64_t in, int64_t out, LinearOptions o)
    : weight(add_parameter("weight", draw_linear({out, in}, in, out))),
      bias(add_parameter("bias", o.bias ? draw_linear({out}, in, out) : Tensor())),
      in_(in),
      out_(out) {}

Linear::Linear(Embedding& table)
    : weight(borrow_parameter("weight", borrow(table).weight)), bias(add_parameter("bias", {})), tied_(true) {}

Linear Linear::tied_to(Embedding& table) { return Linear(table); }

Linear Linear::rebuild() const {
  check(!tied_, "clone: the layer is tied to a table; clone the model that has both");
  return Linear(in_, out_, {.bias = bias.defined()});
}

void Linear::prepare_weights(bool on) {
  weight.keep(on, true);
  bias.keep(on);
}

Tensor Linear::forward(const Tensor& x) { return linear(x, weight(x.dtype()), bias(x.dtype())); }

namespace {

Tensor draw_table(int64_t rows, int64_t width) {
  check(rows > 0 && width > 0, "embedding: sizes ", rows, " x ", width, " must be positive");
  return init::normal({rows, width}, 0, 1);
}

}  // namespace

Embedding::Embedding(int64_t rows, int64_t width, EmbeddingOptions options)
    : weight(add_parameter("weight", draw_table(rows, width))), rows_(rows), width_(width), options_(options) {
  if (std::optional<int64_t>& padding = options_.padding_idx) {
    check(*padding >= -rows && *padding < rows, "embedding: padding_idx is ", *padding, ", the table has ", rows,
          " rows");
    if (*padding < 0) *padding += rows;
    fill(detached::narrow(weight, 0, *padding, 1), 0);
  }
}

Tensor Embedding::forward(const Tensor& ids) {
  return weight.rows([&](const Tensor& table) {
    const Tensor rows = embedding(table, ids);
    if (!options_.padding_idx) return rows;
    return where(unsqueeze(eq(ids, static_cast<double>(*options_.padding_idx)), -1), isonorm::detach(rows), rows);
  });
}

Tensor Embedding::first(int64_t n) {
  const ModuleScope scope(*this);
  return weight.rows([&](const Tensor& table) {
    check(!options_.padding_idx, "embedding: first() of a table with padding_idx ", options_.padding_idx.value_or(0));
    check(n >= 0 && n <= table.size(0), "embedding: ", n, " rows of a table of ", table.size(0));
    return detail::rows_of(table, arange(n, {DType::i64, table.device()}));
  });
}

}  // namespace isonorm::nn
