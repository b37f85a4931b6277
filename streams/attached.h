// Internal: the parametrisations that a stream attaches to the parameters of a model (parametrize.cpp).
#pragma once

#include <span>
#include <typeinfo>

#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "nn/branch.h"
#include "nn/residual/connection.h"
#include "streams/stream.h"

namespace isonorm::streams {

// Base of everything that a stream attaches to a parameter, and can remove again.
class Attached : public nn::Parametrisation {
 public:
  bool is_part_of_model() const override { return true; }
};

// The image of a parameter that touches a stream.
class OnStream : public Attached {
 public:
  OnStream(const Stream& stream, Role role, int dim) : stream(stream), role(role), dim(dim) {}
  const Stream stream;
  const Role role;
  const int dim;
};

// A writer. Along dimension 0 the stream's axis is the output of a layer, for its weight [out, in] and bias [out].
class Writes : public OnStream {
 public:
  Writes(const Stream& stream, int dim) : OnStream(stream, Role::writer, dim) {}
  Tensor operator()(const Tensor& raw) const override { return stream.write(raw, dim); }
  bool is_output_map() const override { return dim == 0; }
  Tensor map_output(const Tensor& y) const override { return stream.write(y, -1); }
  bool is_same_output_map(const nn::Parametrisation& other) const override {
    return typeid(*this) == typeid(other) && stream == static_cast<const Writes&>(other).stream;
  }
};

// A writing embedding table. Each row is mapped separately.
class WritesRows : public OnStream {
 public:
  explicit WritesRows(const Stream& stream) : OnStream(stream, Role::writer, 1) {}
  Tensor operator()(const Tensor& rows) const override { return stream.write(rows, -1); }
  bool by_rows() const override { return true; }
};

// Converts x to f32 if the reader is bf16, so that the result is rounded only once; returns x otherwise.
inline Tensor wide(const Tensor& x, const Tensor& reader) {
  return reader.dtype() == DType::bf16 ? x.to(DType::f32) : x;
}

// True if readers fold in the gain and bias of a norm: A (gain n + bias) + b = (A diag(gain)) n + (b + A bias). Readers
// do this if the stored rows have d - 1 entries, which leaves no place for a gain, or if readers are centred: A P is
// right only for zero-mean rows, and gain n is not zero-mean.
inline bool hands_over(const nn::Norm& norm, const Stream& stream) {
  const auto* connection = dynamic_cast<const nn::Connection*>(&norm);
  return norm.weight.defined() && (!connection || connection->foldable()) &&
         (stream.stored_width() < stream.width() || stream.centres_readers());
}

class Reads : public OnStream {
 public:
  Reads(const Stream& stream, const nn::Norm& norm)
      : OnStream(stream, Role::reader, 1),
        norm(&norm),
        gain_(hands_over(norm, stream) ? norm.weight.stored() : Tensor()) {}
  Tensor operator()(const Tensor& stored) const override {
    if (!gain_.defined()) return stream.read(stored);
    return stream.read(wide(stored, stored) * wide(gain_, stored)).to(stored.dtype());
  }
  std::vector<Tensor> reads() const override {
    return gain_.defined() ? std::vector<Tensor>{gain_} : std::vector<Tensor>();
  }

  const nn::Norm* const norm;  // only compared: a handle of the parameter may outlive the model

 private:
  Tensor gain_;  // the norm's gain if the reader folds it in, else undefined
};

// The bias of a reader that folds in a norm with a bias. The stored bias may be undefined.
class ReadsBias : public Attached {
 public:
  ReadsBias(const nn::Norm& norm, const nn::Parameter& weight)
      : offset_(norm.bias), factor_(norm.layer_options().factor), weight_(weight) {}
  Tensor operator()(const Tensor& stored) const override {
    const Tensor offset = factor_ == 1 ? offset_ : offset_ * factor_;
    const Tensor shift = matmul(wide(weight_.whole(), weight_), wide(offset, weight_));
    return (stored.defined() ? wide(stored, weight_) + shift : shift).to(weight_.dtype());
  }
  std::vector<Tensor> reads() const override { return {offset_, weight_}; }

 private:
  Tensor offset_;  // the norm's bias
  double factor_;
  nn::Parameter weight_;
};

// The weight of a tied head that reads with a mapped table.
class ReadsTable : public Reads {
 public:
  using Reads::Reads;
  Tensor operator()(const Tensor& stored) const override { return stream.read_table(stored); }
};

// A gain or bias that is applied elsewhere, by readers or by a hook of the norm: the norm itself sees an undefined
// tensor. The destructor removes the hook.
class AppliedElsewhere : public Attached {
 public:
  explicit AppliedElsewhere(nn::ModuleHookHandle hook = {}) : hook_(std::move(hook)) {}
  ~AppliedElsewhere() override { hook_.remove(); }
  Tensor operator()(const Tensor&) const override { return {}; }

 private:
  nn::ModuleHookHandle hook_;
};

// Finds the first parametrisation of class P in a parameter's list. Null if there is none.
template <class P> const P* find(std::span<const std::shared_ptr<const nn::Parametrisation>> parametrisations) {
  for (const auto& p : parametrisations)
    if (const auto* found = dynamic_cast<const P*>(p.get())) return found;
  return nullptr;
}

}  // namespace isonorm::streams
