// Predicts the effect of rounding on the gradients of a form: a second implementation of the Transformer, in f64, with
// an independent error wherever the form rounds (lab/probes/rounding.h). It shares no kernel, fused op or
// module with the models that it judges.
#pragma once

#include <map>

#include "equivalence/lockstep/training.h"
#include "lab/probes/rounding.h"
#include "streams/stream.h"
#include "training/model_options.h"

namespace isonorm::equivalence {

class RoundingModel : public Training {
 public:
  // True if this class implements models of these options: a Vit or a Gpt with pre-normalised connections.
  static bool writes_out(const training::TrainingOptions& options);
  // raw: the weights of the Pre-LN model, as numbers of `dtype`. Readers and writers of `form` are mapped as in
  // streams/stream.h and rounded once. Throws unless writes_out(options).
  RoundingModel(const training::TrainingOptions& options, streams::Form form, const nn::Module& raw, Rounding rounding);

  void differentiate(const training::Examples& batch) override;
  Tensor forward(const Tensor& inputs);
  void update(double) override {}
  nn::Module& model() override;  // throws: there are no modules

  const Tensor& logits() const { return logits_; }
  // Values at whose sign changes the function jumps: the inputs of ReLUs; for width 2, whose normalised rows are signs,
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
