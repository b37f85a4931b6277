// A model under training in a proof: its parameters in whatever coordinates, its optimizer, and how far it is from
// another one.
#pragma once

#include <memory>

#include "distributed/threads.h"
#include "equivalence/coordinates/lifted.h"
#include "equivalence/coordinates/variant.h"
#include "equivalence/lockstep/forgery.h"
#include "equivalence/lockstep/training.h"
#include "optim/ema.h"
#include "streams/parametrize.h"
#include "training/build_model.h"
#include "training/steps/step.h"

namespace isonorm::equivalence {

// A model whose weights are stored and updated as a Variant says: one training loop for all of them. Where options.ranks is more
// than 1, so many threads train a copy each of it together; what is compared is the first one's, and bit by bit all have its
// weights.
class Trainee : public Training {
 public:
  Trainee(const training::TrainingOptions& options, const Variant& variant);
  ~Trainee() override;

  // Takes over the parameters of a raw model, in this one's coordinates, with what the variant projects once.
  virtual void start_from(const nn::Module& raw);

  // Forward, loss, backward. Keeps the loss and the gradients in raw coordinates, to be compared entry by entry with
  // those of a Pre-LN model. They are not projected, since a projection hides what plain RMSNorm does wrong (F6).
  // Except where the variant itself takes the mean of a writer's gradient away, before the optimizer (a3, a5) or from
  // the weights after the step (a4, a7): there it never acts on the function, Pre-LN has none (F3), and it legitimately
  // differs (F5); what remains, P g, is compared.
  void differentiate(const training::Examples& batch) override;
  // Clips and updates at rate `lr`; keeps the visible weights, and behind them those of the average.
  void update(double lr) override;

  nn::Module& model() override { return *model_; }
  const streams::Stream& stream() const { return *stream_; }

 protected:
  // The logits.
  virtual Tensor forward(const Tensor& inputs) { return (*model_)(inputs); }
  // The ranks are wrong in that respect, from now on.
  void falsify(Forgery of_ranks);

  int taken_ = 0;  // steps that differentiate() has begun

 private:
  Trainee(const training::TrainingOptions& options, const Variant& variant, distributed::Group& group);
  void make();
  // What each rank does, with its own copy.
  template <class F> void on_ranks(const F& f);
  Tensor loss_of(const training::Examples& batch);
  void differentiate_here(const training::Examples& batch);
  void update_here(double lr);
  // Goes on with model, optimizer and average made anew from the states of these, as from a checkpoint.
  void resume();
  optim::Optimizer& optimizer() const { return lifted_ ? lifted_->optimizer() : *own_; }
  Tensor compared_gradient(const streams::NamedParameter& p) const;
  Tensor compared_weight(const streams::NamedParameter& p) const;

  const training::TrainingOptions options_;
  const Variant variant_;
  std::unique_ptr<distributed::Ranks> ranks_;  // null: there is one
  std::vector<std::unique_ptr<Trainee>> others_;
  distributed::Group* group_ = nullptr;
  Forgery forgery_ = Forgery::none;  // of ranks
  std::unique_ptr<nn::Module> model_;
  const streams::Stream* stream_ = nullptr;  // of the model
  Generator generator_;                      // where dropout draws
  std::unique_ptr<Lifted> lifted_;           // where the variant lifts
  std::unique_ptr<optim::Optimizer> own_;    // elsewhere
  std::optional<training::Step> step_;
  std::unique_ptr<optim::Ema> average_;  // from the first update on, where one is asked for
};

}  // namespace isonorm::equivalence
