// Linear maps and embeddings, with their place at the residual stream.
#pragma once

#include <optional>

#include "nn/mapped.h"
#include "nn/module.h"
#include "nn/stream.h"

namespace isonorm::nn {

class Connection;

struct LinearOptions {
  bool bias = true;
  const Connection* reads = nullptr;  // the input is what this one reads of its stream: the weight is mapped to that
  const Stream* writes = nullptr;     // the output is added to this stream: weight and bias are mapped to write to it
};

// y = x W^T + b: x [..., in] -> [..., out]. weight [out, in], bias [out], both uniform in +-1/sqrt(in) (as PyTorch's).
// A reader's `in` and a writer's `out` is the stream's width d, whatever the form of the stream. Throws on a wrong last
// dimension.
class Linear : public Module {
 public:
  Linear(int64_t in, int64_t out, LinearOptions options = {});

  // The weight and bias that rows meet, given the stream: kept ones after prepare_inference().
  Mapped mapped() const;
  const Connection* reads() const { return reads_; }  // null where the input is not read from a stream

  Tensor weight, bias;  // bias is undefined without

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  virtual Mapped map() const;
  void prepare_weights(bool on) override;

  const Connection* reads_;
  std::optional<Stream> writes_;
  KeptMapping kept_;
};

struct EmbeddingOptions {
  const Stream* writes = nullptr;  // rows are written to this stream
};

// Rows of a table: ids (i64) [...] -> [..., width]. weight [rows, width], standard normal. Throws on an id outside of
// the table.
class Embedding : public Module {
 public:
  Embedding(int64_t rows, int64_t width, EmbeddingOptions options = {});
  // The first n rows, [n, width]: what it gives for arange(n), without a look at the ids. Throws where there are fewer.
  Tensor first(int64_t n);

  Tensor weight;

 protected:
  Tensor forward(const Tensor& ids) override;

 private:
  Tensor written(const Tensor& rows) const;
  std::optional<Stream> writes_;
};

}  // namespace isonorm::nn
