// Layers on a residual stream: what its coordinates make of their parameters (the table of nn/stream.h). A reader's
// `in`, a writer's `out` and a table's width are the stream's parameter_width(); others throw.
#pragma once

#include "nn/linear.h"
#include "nn/residual/connection.h"

namespace isonorm::nn {

// A Linear from rows of `through`; one to the stream.
Linear read_by(const Connection& through, int64_t out, bool bias = true);
Linear written_to(const Stream& stream, int64_t in, bool bias = true);

// The layer with weight and bias as they read rows of `through`; as it is where that is null. `through` outlives it.
Linear reads(Linear reader, const Connection* through);
// The layer with weight and bias, or with rows, as they are added to the stream; as it is where that is null.
Linear writes(Linear writer, const Stream* stream);
Embedding writes(Embedding table, const Stream* stream);
// The same of one parameter, along dimension `dim`.
void writes(Parameter& parameter, const Stream& stream, int dim);

// The connection whose rows a parameter reads; null where it reads none.
const Connection* read_through(const Parameter& parameter);

// What a head that reads with the table of embeddings multiplies the rows behind `norm` with, and adds: parameters on the
// table itself. As it is where the rows behind `norm` are not mapped.
struct TiedHead {
  TiedHead() = default;
  TiedHead(const Parameter& table, const Connection& norm);
  Parameter weight, bias;
};

}  // namespace isonorm::nn
