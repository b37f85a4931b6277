// Parameter: a tensor that a layer holds, and what the forward sees of it. By default that is the tensor itself. A
// parametrisation puts a differentiable map between the two: the stored tensor is what is trained, saved and loaded, and
// the layer computes with its image (as PyTorch's torch.nn.utils.parametrize has it).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "core/tensor.h"

namespace isonorm::nn {

// Replaces what the handle refers to; everybody who holds it sees the new tensor. A leaf stays one, with its hooks.
void replace_tensor(const Tensor& x, const Tensor& value);

// Marks a leaf that gets a name in a module: it is owned, and from the second name on it may be tied (autograd::Node).
void own_leaf(const Tensor& leaf);

// Whether y can take x's place: same shape, dtype and device.
bool fits(const Tensor& x, const Tensor& y);

class Parametrisation {
 public:
  virtual ~Parametrisation() = default;
  // What the forward sees of the stored tensor, which is undefined where a layer has a value that nothing is stored for.
  virtual Tensor operator()(const Tensor& stored) const = 0;
  // The tensors that it reads beside the stored one.
  virtual std::vector<Tensor> reads() const { return {}; }
  // Whether it maps each row of dimension 0 by itself: a layer that reads some rows of a table maps these alone.
  virtual bool by_rows() const { return false; }
};

// An entry of a module's registry; members refer to it: Parameter& weight = add_parameter("weight", ...). As a Tensor it is
// the stored one. A copy is a second handle of the same tensor and parametrisation. Copying is explicit: a member
// `Parameter w = add_parameter(..)` would not follow the assignments of the module's.
class Parameter : public Tensor {
 public:
  Parameter() = default;  // nothing is stored, and nothing is seen
  explicit Parameter(const Tensor& stored);
  explicit Parameter(const Parameter& other) = default;
  // Weight tying: `tensor`, a leaf of the same shape, dtype and device, becomes the parameter; with another Parameter its
  // parametrisation, too. The module refuses another tensor, by the parameter's name, at its next forward and wherever it lists
  // its parameters. Throws if this parameter has a parametrisation, or holds a part.
  //   decoder.weight = encoder.weight;
  Parameter& operator=(const Tensor& tensor);
  Parameter& operator=(const Parameter& other);
  // Whether the tensor is the one that was registered, or that a permitted assignment put in its place.
  bool is_intact() const { return handle() == own_.handle(); }
  const Tensor& own() const { return own_; }
  void settle() { own_ = *this; }  // what it holds now is its own

  const Tensor& stored() const { return *this; }
  using Tensor::operator();  // indices: weight(0, Slice())
  // The tensor that the forward sees, of the shape that the parametrisation gives it. Undefined if there is neither a stored tensor
  // nor a parametrisation.
  Tensor operator()() const;
  // The same as products with rows of a dtype read it: without a graph rounded to bf16 where they are bf16 and it is f32.
  Tensor operator()(DType rows) const;
  // f(operator()()) of an f that gives some rows of a table: where the parametrisation acts by rows, it maps these alone.
  template <class F> Tensor rows(F&& f) const {
    const Parametrisation* p = parametrisation();
    if (!p || !p->by_rows()) return f((*this)());
    seen_->asked = true;
    return (*p)(f(whole()));
  }

  // Stores `value`, of any shape, in the place of what is stored.
  void store(const Tensor& value) const;

  // What is stored is a part of a tensor, and whole(stored), differentiable, that tensor: what a parametrisation maps, or the forward sees.
  void hold_part(std::function<Tensor(const Tensor& part)> whole) const;
  bool holds_part() const { return seen_ && seen_->whole; }
  // The stored tensor, or the one that it is a part of.
  Tensor whole() const { return seen_ && seen_->whole ? seen_->whole(*this) : stored(); }

  // Puts the parametrisation in the place of the one before; null: the tensor itself is seen.
  void parametrize(std::shared_ptr<const Parametrisation> parametrisation);
  const Parametrisation* parametrisation() const { return seen_ ? seen_->by.get() : nullptr; }
  // Whether anybody asked for what is seen since then: a forward that does not computes with the stored tensor.
  bool asked() const { return seen_ && seen_->asked; }

  // Keeps what is seen now for forward passes without a graph, until a tensor that it was made from is written to or
  // replaced; with `packed` what products read of it, too, from the first one on: the packed copy, and for rows of bf16 the
  // rounded value (core/packing.h). false lets go of it.
  void keep(bool on, bool packed = false);

 private:
  struct Source {
    Tensor tensor;
    std::weak_ptr<Storage> storage;
    uint32_t version;
  };
  class Kept {
   public:
    Kept(const Tensor& value, bool packed, std::vector<Source> sources)
        : value(value), packed_(packed), sources_(std::move(sources)) {}
    ~Kept();
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;

    bool holds() const;  // what it was made from is as it was
    Tensor read_by(DType rows);

    const Tensor value;

   private:
    const bool packed_;
    const std::vector<Source> sources_;
    std::once_flag packs_, rounds_;  // threads that share a model for inference ask at once
    Tensor rounded_;
  };
  struct Seen {
    std::shared_ptr<const Parametrisation> by;
    std::function<Tensor(const Tensor&)> whole;
    std::unique_ptr<Kept> kept;
    std::atomic<bool> asked = false;  // by threads as above
  };
  Kept* kept() const;  // null where there is nothing, or what it was made from is no more
  void assign(const Tensor& tensor, std::shared_ptr<Seen> seen);

  std::shared_ptr<Seen> seen_;
  Tensor own_;
};

}  // namespace isonorm::nn
