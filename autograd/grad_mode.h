// Switches of the calling thread: recording of ops, fused ops or their compositions, checking every result for NaN, and
// the dtype of activations saved for the backward.
#pragma once

#include <memory>

#include "core/dtype.h"

namespace isonorm {

struct RoundedCopies;  // autograd/saved.cpp

bool grad_enabled();
bool anomaly_enabled();

// While it lives, ops of this thread are not recorded.
class NoGrad {
 public:
  [[nodiscard]] NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};

// While it lives, ops of this thread are recorded, even within a NoGrad. Used by rules whose ops the backward continues
// through.
class Recording {
 public:
  [[nodiscard]] Recording();
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  bool before_;
};

struct AnomalyOptions {
  bool infinities = false;  // also stops at infinities. Off by default: masks contain -inf, and log(0) is -inf.
};

// While it lives, the first op of this thread that produces NaN throws an error that names the op and its module. In a
// backward, rules are checked in the same way, with the module if the op was recorded meanwhile; if a rule calls an op
// that fails, the error names the rule's op first: "block: my_op: log: forward produced nan". Reads every result once
// more: for debugging.
class AnomalyMode {
 public:
  [[nodiscard]] explicit AnomalyMode(AnomalyOptions options = {});
  ~AnomalyMode();
  AnomalyMode(const AnomalyMode&) = delete;
  AnomalyMode& operator=(const AnomalyMode&) = delete;

  const AnomalyOptions options;

 private:
  const AnomalyMode* before_;
};

// While a SaveActivations(DType::bf16) lives, f32 activations that ops of this thread save for their gradients are
// stored as bf16, in half the memory: rounded when they are saved, widened when the gradient needs them. The forward
// keeps its bits. In the gradient each saved entry x becomes x (1 + e), |e| <= 2^-8, half the spacing of bf16 numbers.
// The forward is exact, so e does not grow from layer to layer (ActNN, 2104.14129, stores two bits per entry in this
// way).
//
// Rounded: inputs of linear and mlp, mlp's hidden entries, attention's inputs and result, rows of norms, and everything
// that activation functions and softmax save. If several ops save a tensor, they share one copy.
//
// Not rounded: weights, whether parameters or mapped; statistics, masks, the logits of a loss; operands of general
// arithmetic (mul, matmul, ...); tensors below 4 KiB or of another dtype.
//
// An inner SaveActivations(DType::f32), or any other floating dtype but bf16, switches it off. Throws if dtype is not
// floating.
class SaveActivations {
 public:
  [[nodiscard]] explicit SaveActivations(DType dtype);
  ~SaveActivations();
  SaveActivations(const SaveActivations&) = delete;
  SaveActivations& operator=(const SaveActivations&) = delete;

 private:
  std::unique_ptr<RoundedCopies> copies_;
  RoundedCopies* before_;
};

// While it lives, every fused op of this thread runs its composition from reference:: instead: slower, equal up to
// rounding. Use it to find out whether a fused op is to blame. A graph recorded meanwhile keeps its compositions
// afterwards.
class UseReference {
 public:
  [[nodiscard]] UseReference();
  ~UseReference();
  UseReference(const UseReference&) = delete;
  UseReference& operator=(const UseReference&) = delete;

 private:
  bool before_;
};

bool use_reference();

}  // namespace isonorm
