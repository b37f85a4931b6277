// What a backward rule keeps of the forward: tensors as they were, or activations in half the memory.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace isonorm {

namespace autograd {
struct Node;  // autograd/node.h
}

// A tensor as an op saw it: data without graph (hence no cycle). An exact one shares its storage and is refused if that
// was changed in place since; a rounded one is a copy, which no later change reaches.
class Saved {
 public:
  Saved() = default;
  explicit Saved(const Tensor& x);
  // The saved tensor. While its rule runs to be differentiated, it has the graph of the input or output of the op that
  // it is; throws if it is floating and neither, since its share of the second derivative would be lost. Otherwise
  // data().
  Tensor get() const;
  operator Tensor() const { return get(); }
  // The saved tensor without graph, a new f32 one if it was rounded: a constant for second derivatives. Throws if the
  // storage of an exact one was written to after it was saved.
  Tensor data() const;

 private:
  friend Saved save_activation(const Tensor& x);

  Tensor tensor_;
  // The node that the tensor is output number output_ of; of a tensor that takes no gradient, its storage. Compared,
  // never followed.
  const void* source_ = nullptr;
  int output_ = 0;
  uint32_t version_ = 0;
  uint32_t seq_ = 0;      // low bits of the node's Node::seq: the node may be gone, and another one at its address
  bool rounded_ = false;  // tensor_ is a bf16 copy of an f32 tensor
};
inline Saved save(const Tensor& x) { return Saved(x); }
// As save(); while a SaveActivations guard of bf16 lives, a rounded copy. For what depends on the batch, not for
// weights.
Saved save_activation(const Tensor& x);
// While it lives, what this thread saved has the graph of that node, whose rule runs; null: none.
class Attaching {
 public:
  [[nodiscard]] explicit Attaching(autograd::Node* node);
  ~Attaching();
  Attaching(const Attaching&) = delete;
  Attaching& operator=(const Attaching&) = delete;

 private:
  autograd::Node* before_;
};

// Whether save_activation keeps a copy in bf16 of a tensor of `numel` elements. An op whose kernel rounds what it keeps
// while it computes asks this.
bool rounds_activation(DType dtype, int64_t numel);

}  // namespace isonorm
