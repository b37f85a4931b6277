#include "nn/linear.h"

#include <cmath>

#include "autograd/ops/checked_ids.h"
#include "autograd/ops/create.h"
#include "autograd/ops/index.h"
#include "autograd/ops/matmul.h"
#include "nn/init.h"
#include "nn/module_scope.h"
#include "nn/residual/connection.h"

namespace isonorm::nn {

Linear::Linear(int64_t in, int64_t out, LinearOptions o)
    : reads_(o.reads), writes_(o.writes ? std::optional(*o.writes) : std::nullopt) {
  check(in > 0 && out > 0, "linear: sizes ", in, " -> ", out, " must be positive");
  check(!o.reads || in == o.reads->stream().width(), "linear: a reader has ", in, " inputs, its stream width ",
        o.reads ? o.reads->stream().width() : 0);
  check(!o.writes || out == o.writes->width(), "linear: a writer has ", out, " outputs, its stream width ",
        o.writes ? o.writes->width() : 0);
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  const int64_t rows = writes_ ? writes_->parameter_width() : out,
                columns = reads_ ? reads_->stream().parameter_width() : in;
  weight = add_parameter("weight", init::uniform({rows, columns}, -bound, bound),
                         reads_    ? Role::reader
                         : writes_ ? Role::writer
                                   : Role::neutral,
                         reads_ ? 1 : 0);
  if (o.bias)
    bias = add_parameter("bias", init::uniform({rows}, -bound, bound), writes_ ? Role::writer : Role::neutral, 0);
}

Mapped Linear::mapped() const {
  const Mapped* kept = kept_.find();
  return kept ? *kept : map();
}

Mapped Linear::map() const {
  if (reads_) return reads_->folded(weight, bias);
  if (writes_) return {writes_->write(weight, 0), bias.defined() ? writes_->write(bias, 0) : bias};
  return {weight, bias};
}

void Linear::prepare_weights(bool on) {
  if (!on) return kept_.let_go();
  std::vector<Tensor> from = parameters();
  if (reads_)
    for (const Tensor& p : reads_->parameters()) from.push_back(p);
  kept_.keep(map(), from);
}

Tensor Linear::forward(const Tensor& x) {
  const auto [w, b] = mapped();
  return linear(x, w, b);
}

Embedding::Embedding(int64_t rows, int64_t width, EmbeddingOptions o)
    : writes_(o.writes ? std::optional(*o.writes) : std::nullopt) {
  check(rows > 0 && width > 0, "embedding: sizes ", rows, " x ", width, " must be positive");
  check(!o.writes || width == o.writes->width(), "embedding: width ", width, ", the stream's is ",
        o.writes ? o.writes->width() : 0);
  weight = add_parameter("weight", init::normal({rows, writes_ ? writes_->parameter_width() : width}, 0, 1),
                         writes_ ? Role::writer : Role::neutral, 1);
}

Tensor Embedding::forward(const Tensor& ids) { return written(embedding(weight, ids)); }

Tensor Embedding::first(int64_t n) {
  const ModuleScope scope(*this);
  check(n >= 0 && n <= weight.size(0), "embedding: ", n, " rows of a table of ", weight.size(0));
  return written(detail::rows_of(weight, arange(n, {DType::i64, weight.device()})));
}

// Mapping the rows that are used is mapping the table.
Tensor Embedding::written(const Tensor& rows) const { return writes_ ? writes_->write(rows, -1) : rows; }

}  // namespace isonorm::nn
