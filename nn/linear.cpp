#include "nn/linear.h"

#include <cmath>

#include "autograd/ops/checked_ids.h"
#include "autograd/ops/create.h"
#include "autograd/ops/index.h"
#include "autograd/ops/matmul.h"
#include "nn/init.h"
#include "nn/module_scope.h"

namespace isonorm::nn {

Linear::Linear(int64_t in, int64_t out, LinearOptions o) : in_(in), out_(out) {
  check(in > 0 && out > 0, "linear: sizes ", in, " -> ", out, " must be positive");
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  weight = add_parameter("weight", init::uniform({out, in}, -bound, bound));
  if (o.bias) bias = add_parameter("bias", init::uniform({out}, -bound, bound));
}

Linear Linear::tied_to(Embedding& table) {
  Linear linear;
  linear.weight = Parameter(linear.borrow(table).weight.stored());
  linear.tied_ = true;
  return linear;
}

Linear Linear::rebuild() const {
  check(!tied_, "clone: the layer is tied to a table; clone the model that has both");
  return Linear(in_, out_, {.bias = bias.defined()});
}

void Linear::prepare_weights(bool on) {
  weight.keep(on, true);
  bias.keep(on);
}

Tensor Linear::forward(const Tensor& x) { return linear(x, weight(x.dtype()), bias(x.dtype())); }

Embedding::Embedding(int64_t rows, int64_t width) : rows_(rows), width_(width) {
  check(rows > 0 && width > 0, "embedding: sizes ", rows, " x ", width, " must be positive");
  weight = add_parameter("weight", init::normal({rows, width}, 0, 1));
}

Tensor Embedding::forward(const Tensor& ids) {
  return weight.rows([&](const Tensor& table) { return embedding(table, ids); });
}

Tensor Embedding::first(int64_t n) {
  const ModuleScope scope(*this);
  return weight.rows([&](const Tensor& table) {
    check(n >= 0 && n <= table.size(0), "embedding: ", n, " rows of a table of ", table.size(0));
    return detail::rows_of(table, arange(n, {DType::i64, table.device()}));
  });
}

}  // namespace isonorm::nn
