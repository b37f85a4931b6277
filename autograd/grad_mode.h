// Switches of the calling thread: recording of ops, a check of every result for NaN, and the dtype of activations that
// wait for the backward.
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

// While it lives, ops of this thread are recorded, also within a NoGrad: what a rule computes that backward is to pass.
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
  bool infinities = false;  // stops at infinities, too. Masks are made of -inf, and log(0) is -inf.
};

// While it lives, the first op of this thread that produces NaN throws, naming itself and its module; backward rules of
// ops recorded meanwhile do the same, and an op that a rule calls names the rule's op before itself: "block: my_op:
// log: forward produced nan". Reads every result once more: for debugging.
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

// While a SaveActivations(DType::bf16) lives, the f32 activations that ops of this thread keep for their gradients are
// kept as bf16, in half the memory: rounded when they are kept, widened when the gradient needs them. A forward has the
// same bits; in the gradient each kept entry x is x (1 + e), |e| <= 2^-8, half the distance between neighbours in bf16.
// The forward being exact, e does not grow from layer to layer (ActNN, 2104.14129, keeps two bits of an entry so).
// Rounded are: inputs of linear and mlp and mlp's hidden entries, what attention reads and its result, rows of norms,
// what activation functions and softmax keep. A tensor that several of them keep is one copy. As they are stay:
// weights, parameters or mapped; statistics, masks, the logits of a loss; operands of general arithmetic (mul, matmul,
// ...); tensors of less than 4 KiB, and of another dtype. Within the life of another one, SaveActivations(DType::f32),
// or any floating dtype but bf16, switches it off. Throws where dtype is not floating.
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

}  // namespace isonorm
