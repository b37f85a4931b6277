// Linear maps and embeddings.
#pragma once

#include <optional>

#include "nn/module.h"

namespace isonorm::nn {

// x weight^T + bias: [out, in] and [out], the bias undefined if there is none.
struct WeightAndBias {
  Tensor weight, bias;
};

class Embedding;

struct LinearOptions {
  bool bias = true;
};

// y = x W^T + b: x [..., in] -> [..., out]. weight [out, in], bias [out], both uniform in +-1/sqrt(in) (as PyTorch's).
// Throws on a wrong last dimension.
class Linear : public Module {
 public:
  Linear(int64_t in, int64_t out, LinearOptions options = {});
  // A linear map without bias whose weight is a table [out, in]. The table owns and trains the weight; this layer has
  // no parameter.
  static Linear tied_to(Embedding& table);
  bool tied() const { return tied_; }
  // Throws if it is tied to a table: a model that has both is cloned as a whole.
  Linear rebuild() const;

  Parameter &weight, &bias;  // bias is undefined without

 protected:
  Tensor forward(const Tensor& x) override;
  int64_t in() const { return in_; }
  int64_t out() const { return out_; }

 private:
  explicit Linear(Embedding& table);
  void prepare_weights(bool on) override;
  int64_t in_ = 0, out_ = 0;
  const bool tied_ = false;
};

struct EmbeddingOptions {
  std::optional<int64_t> padding_idx = {};  // the row for padding: it begins as zeros and takes no gradient
};

// Rows of a table: ids (i64) [...] -> [..., width]. weight [rows, width], standard normal. Throws on an id outside of
// the table, and if padding_idx is outside of [-rows, rows).
class Embedding : public Module {
 public:
  Embedding(int64_t rows, int64_t width, EmbeddingOptions options = {});
  // The first n rows, [n, width]: the same as for arange(n), without a check of ids. Throws if there are fewer, and if
  // there is a padding_idx.
  Tensor first(int64_t n);
  Embedding rebuild() const { return Embedding(rows_, width_, options_); }

  Parameter& weight;

 protected:
  Tensor forward(const Tensor& ids) override;

 private:
  int64_t rows_, width_;
  EmbeddingOptions options_;
};

}  // namespace isonorm::nn
