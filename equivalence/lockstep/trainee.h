// A model under training in a proof: its parameters in any coordinates, its optimizer, and its deviation from another
// one.
#pragma once

#include <memory>

#include "distributed/world.h"
#include "equivalence/coordinates/lifted.h"
#include "equivalence/coordinates/variant.h"
#include "equivalence/lockstep/training.h"
#include "optim/ema.h"
#include "streams/parametrize.h"
#include "training/training_options.h"
#include "training/steps/step.h"

namespace isonorm::equivalence {

// The mistake that is planted in a negative control.
enum class NegativeControl {
  none,
  eps,               // eps of the norms is multiplied by 1 + size
  entry,             // one entry is off by `size` times the largest entry of its tensor
  row,               // one row of a weight is multiplied by 1 + size
  batch,             // at one step it sees another batch
  frozen_gains,      // gains and biases of norms are not trained
  uncorrected_head,  // the head reads the stored table without the stream's map (gpt)
  centred_entry,     // it begins with centred embeddings, though the first branch reads bare ones
  // Mistakes of data-parallel ranks:
  summed,       // gradients are summed instead of averaged
  left_out,     // the gradient of the second rank is left out
  added_twice,  // the gradient of the last parameter is summed twice
  unweighted,   // all ranks have equal weights, though some have one row more
  same_draws,   // all ranks draw the dropout masks of the first one
};
constexpr bool of_ranks(NegativeControl f) { return f >= NegativeControl::summed; }

// A model whose weights are stored and updated as a Variant says: one training loop for all variants. If options.ranks
// is more than 1, that many threads train one copy each, together. The first copy is compared; all copies have the same
// weights to the last bit.
class Trainee : public Training {
 public:
  Trainee(const training::TrainingOptions& options, const Variant& variant);
  ~Trainee() override;

  // Takes over the parameters of a raw model, mapped to this model's coordinates, and applies the variant's initial
  // projection.
  virtual void start_from(const nn::Module& raw);

  // Forward, loss, backward. Keeps the loss, and the gradients in raw coordinates, to be compared entry by entry with a
  // Pre-LN model's. They are not projected, because a projection hides the error of plain RMSNorm (F6). The exception:
  // if the variant removes the mean of writers' gradients before the optimizer (a3, a5), or of writers after the step
  // (a4, a7), P g is compared. That mean never acts on the function. Pre-LN's gradient has none (F3), and this model's
  // may have one (F5).
  void differentiate(const training::Examples& batch) override;
  // Clips and updates at rate `lr`. Keeps the visible weights, then the visible weights of the average, if there is
  // one.
  void update(double lr) override;

  nn::Module& model() override { return *model_; }
  const streams::Stream& stream() const { return *stream_; }

 protected:
  // The logits.
  virtual Tensor forward(const Tensor& inputs) { return (*model_)(inputs); }
  // From now on the ranks make this mistake.
  void falsify(NegativeControl of_ranks);

  int taken_ = 0;  // calls of differentiate()

 private:
  Trainee(const training::TrainingOptions& options, const Variant& variant, distributed::Group& group);
  void make();
  // Calls f for each rank, with its own copy.
  template <class F> void on_ranks(const F& f);
  Tensor loss_of(const training::Examples& batch);
  void differentiate_here(const training::Examples& batch);
  void update_here(double lr);
  // Makes model, optimizer and average again from their states, as after loading a checkpoint.
  void resume();
  optim::Optimizer& optimizer() const { return lifted_ ? lifted_->optimizer() : *own_; }
  Tensor compared_gradient(const streams::NamedParameter& p) const;
  Tensor compared_weight(const streams::NamedParameter& p) const;

  const training::TrainingOptions options_;
  const Variant variant_;
  std::unique_ptr<distributed::Ranks> ranks_;  // null if there is only one rank
  std::vector<std::unique_ptr<Trainee>> others_;
  distributed::Group* group_ = nullptr;
  NegativeControl mistake_ = NegativeControl::none;  // of the ranks
  std::unique_ptr<nn::Module> model_;
  const streams::Stream* stream_ = nullptr;  // of the model
  Generator generator_;                      // for dropout
  std::unique_ptr<Lifted> lifted_;           // if the variant lifts
  std::unique_ptr<optim::Optimizer> own_;    // otherwise
  std::optional<training::Step> step_;
  std::unique_ptr<optim::Ema> average_;  // made at the first update, if options ask for an average
};

}  // namespace isonorm::equivalence
