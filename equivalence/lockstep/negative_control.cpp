#include "equivalence/lockstep/negative_control.h"

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "equivalence/judge/criterion.h"
#include "nn/gpt.h"
#include "streams/parametrize.h"
#include "streams/stream.h"
#include "training/from_outside.h"

namespace isonorm::equivalence {
namespace {

bool makes_embeddings(const streams::NamedParameter& p) {
  return !p.name.starts_with("blocks.") && !p.name.starts_with("head.") && !p.name.starts_with("norm.");
}
bool belongs_to_norm(const streams::NamedParameter& p) { return p.name.find("norm") != std::string::npos; }

training::TrainingOptions with_other_eps(training::TrainingOptions o, double size) {
  o.model.transformer().eps *= 1 + size;
  return o;
}

struct Planted {
  const Variant& variant;
  NegativeControl mistake = NegativeControl::none;
  const char* name = "";
};

std::vector<Planted> planted(const training::TrainingOptions& o) {
  constexpr const char* kExchanged = "one batch exchanged";
  // With a program's own model only the reference's form is certain to be the reference's function.
  if (!listed(o.model.row()) || !training::listed(o.model.transformer().connection))
    return {{raw_variant(streams::Form::layer_norm), NegativeControl::batch, kExchanged}};
  std::vector<Planted> all;
  const nn::TransformerOptions& t = o.model.transformer();
  // Mapped storage cannot hold these: see nn/gpt.cpp and nn/branch.cpp.
  if ((o.model.flag("tied") && (t.affine || t.connection.reads_embeddings)) || t.branch.dropout > 0 ||
      t.branch.layer_scale > 0) {
    all.push_back({variant("raw_crms_norm"), NegativeControl::batch, kExchanged});
    if (t.affine) all.push_back({variant("raw_rms_norm"), NegativeControl::frozen_gains, "gains frozen"});
  } else {
    all.push_back({variant("projected_once")});
    if (!t.affine) all.push_back({variant("compressed_plain")});  // it cannot hold a gain apart from its readers
  }
  // The weights of a Pre-LN model hide this mistake; these show it.
  if (t.connection.reads_embeddings)
    all.push_back({variant("raw_rms_norm"), NegativeControl::centred_entry, "embeddings centred"});
  if (o.ranks == 1) return all;
  const bool even = o.batch / o.accumulate % o.ranks == 0;
  const auto of_ranks = [&](bool can_be, NegativeControl mistake, const char* name) {
    if (can_be) all.push_back({raw_variant(streams::Form::rms_norm), mistake, name});
  };
  of_ranks(true, NegativeControl::summed, "sum for mean");
  of_ranks(true, NegativeControl::left_out, "a rank left out");
  of_ranks(true, NegativeControl::added_twice, "a gradient summed twice");
  of_ranks(!even && !o.rank_invariant, NegativeControl::unweighted, "ranks unweighted");
  of_ranks(even && !o.rank_invariant && t.branch.dropout > 0, NegativeControl::same_draws,
           "equal dropout on all ranks");
  return all;
}

}  // namespace

NegativeControlTraining::NegativeControlTraining(const training::TrainingOptions& o, const Variant& variant,
                                                 NegativeControl mistake, double size)
    : Trainee(mistake == NegativeControl::eps ? with_other_eps(o, size) : o, variant), mistake_(mistake), size_(size) {
  if (of_ranks(mistake)) falsify(mistake);
}

void NegativeControlTraining::exchange_batch(int step, training::Examples examples) {
  exchanged_ = step;
  instead_ = std::move(examples);
}

void NegativeControlTraining::start_from(const nn::Module& raw) {
  Trainee::start_from(raw);
  if (mistake_ == NegativeControl::centred_entry)
    for (const streams::NamedParameter& p : streams::named_parameters(model()))
      if (makes_embeddings(p)) copy_into(detach(p.tensor), streams::recentre(detach(p.tensor), p.stream_dim));
  if (mistake_ != NegativeControl::entry && mistake_ != NegativeControl::row) return;
  const NoGrad no_grad;
  const Tensor w = model().state_dict().at("blocks.0.mlp.fc2.weight"), row = select(w, 0, 0);
  if (mistake_ == NegativeControl::row)
    copy_into(row, row * (1 + size_));
  else
    copy_into(narrow(row, 0, 0, 1), narrow(row, 0, 0, 1) + size_ * largest_entry(w));
}

void NegativeControlTraining::differentiate(const training::Examples& batch) {
  const bool exchange = mistake_ == NegativeControl::batch && instead_ && taken_ == exchanged_;
  Trainee::differentiate(exchange ? *instead_ : batch);
  if (mistake_ != NegativeControl::frozen_gains) return;
  for (const streams::NamedParameter& p : streams::named_parameters(model()))
    if (belongs_to_norm(p)) set_grad(p.tensor, {});
}

Tensor NegativeControlTraining::forward(const Tensor& inputs) {
  if (mistake_ != NegativeControl::uncorrected_head) return Trainee::forward(inputs);
  auto& gpt = dynamic_cast<nn::Gpt&>(model());
  return linear(gpt.features(inputs), streams::named_parameters(gpt).front().tensor, {});
}

std::vector<RunResult> negative_control_records(const training::TrainingOptions& o) {
  std::vector<RunResult> records;
  for (const Planted& p : planted(o)) {
    records.push_back(record(p.variant));
    records.back().expected = Verdict::different;
    records.back().negative_control = p.name;
    // A mistake of ranks shows in the first gradient. A wrong size may never be seen later, because clipping and Adam
    // undo it.
    records.back().same_start = p.mistake != NegativeControl::centred_entry && !of_ranks(p.mistake);
  }
  return records;
}

void add_negative_controls(Lockstep& all, const training::TrainingOptions& o, const nn::Module& initial,
                           std::span<RunResult> records, const training::Examples& other) {
  size_t next = 0;
  for (const Planted& p : planted(o)) {
    RunResult& record = records[next++];
    training::TrainingOptions own = o;
    if (!of_ranks(p.mistake)) own.ranks = 1;  // the mistake does not need ranks
    auto training = std::make_unique<NegativeControlTraining>(own, *record.variant, p.mistake);
    training->exchange_batch(kNegativeSteps / 2, other);
    training->start_from(initial);
    all.add(std::move(training), record);
  }
}

}  // namespace isonorm::equivalence
