// Predicts the effect of rounding on the gradients of a form: a second implementation of the Transformer, in f64, with
// an independent error wherever the form rounds. It shares no kernel, fused op or module with the models that it judges.
#pragma once

#include <map>

#include "core/random.h"
#include "equivalence/lockstep/training.h"
#include "streams/stream.h"
#include "training/model_options.h"
#include "training/training_options.h"

namespace isonorm::equivalence {

// The root mean square of a rounding error, relative to the number and in units of eps. The error of a number 1 <= m <
// 2 is uniform on +-eps/2, so its root mean square is eps/sqrt(12). The mean of 1/m^2 over a mantissa with density 1/(m
// ln 2) is 3/(8 ln 2). Together: sqrt(3/(96 ln 2)).
inline constexpr double kRoundingError = 0.21233;

// Independent errors, in f64: to first order the errors of arithmetic in `dtype`.
//   f64, f32  every result of an elementary operation is rounded; a sum of n terms that is taken one after the other
//             has the error of its n - 1 partial sums. Its root mean square is at most
//             kRoundingError sqrt(n/3 (s^2 + sum of squared terms)) with the sum s: terms of one sign give the first
//             part, independent terms the second
//   bf16      sums are taken in f32, and an op rounds its result once: only that rounding counts
class Rounding {
 public:
  Rounding() = default;  // rounds nothing
  Rounding(DType dtype, Generator generator);

  // x rounded; its gradient is rounded in the backward, too.
  Tensor operator()(const Tensor& x) { return value(gradient_of(x)); }
  Tensor value(const Tensor& x);
  // Rounds only in f64 and f32: for a step inside a fused op.
  Tensor inside(const Tensor& x) { return inside_ ? (*this)(x) : x; }
  // x, with its gradient rounded. An op that reads x: its contribution is rounded before it is added to the
  // others'.
  Tensor gradient_of(const Tensor& x);
  // x W^T + b, with its gradients.
  Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias);
  // The sum along the last dimension, kept.
  Tensor row_sum(const Tensor& x);

 private:
  Tensor error(const Tensor& of);
  Tensor error_of_sum(const Tensor& sum, const Tensor& squares, int64_t terms);

  double eps_ = 0;
  bool inside_ = false;
  Generator generator_;
};

class RoundingModel : public Training {
 public:
  // True if this class implements models of these options: a Vit or a Gpt with pre-normalized connections.
  static bool writes_out(const training::TrainingOptions& options);
  // raw: the weights of the Pre-LN model, as numbers of `dtype`. Readers and writers of `form` are mapped as in
  // streams/stream.h and rounded once. Throws unless writes_out(options).
  RoundingModel(const training::TrainingOptions& options, streams::Form form, const nn::Module& raw, Rounding rounding);

  void differentiate(const training::Examples& batch) override;
  Tensor forward(const Tensor& inputs);
  void update(double) override {}
  nn::Module& model() override;  // throws: there are no modules

  const Tensor& logits() const { return logits_; }
  // Values at whose sign changes the function jumps: the inputs of ReLUs; for width 2, whose normalized rows are signs,
  // the lengths of the stream's rows, which are 0 there.
  const std::vector<Tensor>& kinks() const { return kinks_; }

 private:
  struct Linear {
    Tensor weight, bias;
  };
  Tensor raw(const std::string& name) const;  // undefined if there is none
  Tensor written(const std::string& name, int dim);
  Linear reader(const std::string& name, const std::string& norm);
  Linear reader_of(const Tensor& weight, const Tensor& bias, const std::string& norm);
  Linear writer(const std::string& name);
  Tensor linear(const Tensor& x, const Linear& l) { return round_.linear(x, l.weight, l.bias); }
  const nn::TransformerOptions& transformer() const { return options_.model.transformer(); }
  bool hands_over() const { return transformer().affine && stream_.stored_width() != stream_.width(); }

  Tensor norm(const Tensor& rows, const std::string& name);
  Tensor attention(const Tensor& x, const std::string& block);
  Tensor mlp(const Tensor& x, const std::string& block);
  Tensor tokens(const Tensor& inputs);

  const training::TrainingOptions options_;
  const streams::Stream stream_;
  std::map<std::string, Tensor> raw_;
  Rounding round_;
  Tensor logits_;
  std::vector<Tensor> kinks_;
};

}  // namespace isonorm::equivalence
