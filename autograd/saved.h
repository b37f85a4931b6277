// Tensors that a backward rule keeps from the forward: exactly, or activations in half the memory.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace isonorm {

namespace autograd {
struct Node;  // autograd/node.h
}

// A tensor as an op saw it: its data without the graph, so there is no cycle. An exact one shares the tensor's storage,
// and reading it throws if the storage was changed in place since; a rounded one is a copy, which later changes do not
// reach.
class Saved {
 public:
  Saved() = default;
  explicit Saved(const Tensor& x);
  // The saved tensor. While its rule runs with create_graph, it is attached to the graph of the op's input or output
  // that was saved; throws if it is floating and neither an input nor an output, since its share of the second
  // derivative would be lost. Otherwise the same as data().
  Tensor get() const;
  operator Tensor() const { return get(); }
  // The saved tensor without graph, a constant for second derivatives. If it was rounded, this is a new f32 tensor.
  // Throws if the storage of an exact one was written to after it was saved.
  Tensor data() const;

 private:
  friend Saved save_activation(const Tensor& x);

  Tensor tensor_;
  // Identity of the tensor, compared but never dereferenced: the node whose output number output_ it is, or its storage
  // if it takes no gradient.
  const void* source_ = nullptr;
  int output_ = 0;
  uint32_t version_ = 0;
  uint32_t seq_ = 0;      // low bits of Node::seq, which tell the node from a later one at the same address
  bool rounded_ = false;  // tensor_ is a bf16 copy of an f32 tensor
};
inline Saved save(const Tensor& x) { return Saved(x); }
// Like save(), but a rounded copy while a SaveActivations guard of bf16 lives. Use it on tensors that depend on the
// batch, not on weights.
Saved save_activation(const Tensor& x);
// While it lives, tensors saved by this thread get the graph of `node`, whose rule is running; null: no graph.
class Attaching {
 public:
  [[nodiscard]] explicit Attaching(autograd::Node* node);
  ~Attaching();
  Attaching(const Attaching&) = delete;
  Attaching& operator=(const Attaching&) = delete;

 private:
  autograd::Node* before_;
};

// True if save_activation() would keep a bf16 copy of a tensor of `numel` elements. Asked by ops whose kernels round
// the saved tensors while they compute.
bool rounds_activation(DType dtype, int64_t numel);

}  // namespace isonorm
