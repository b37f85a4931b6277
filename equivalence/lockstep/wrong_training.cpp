#include "equivalence/lockstep/wrong_training.h"

#include "equivalence/lockstep/criterion.h"
#include "equivalence/lockstep/forged.h"
#include "streams/stream.h"
#include "training/from_outside.h"

namespace isonorm::equivalence {
namespace {

struct WrongTraining {
  const Variant& variant;
  Forgery forgery = Forgery::none;
  const char* fault = "";
};

std::vector<WrongTraining> wrong_trainings(const training::TrainingOptions& o) {
  constexpr const char* kExchanged = "one batch exchanged";
  // For a program's own model only the reference's form is certain to be the reference's function.
  if (!listed(o.model.row()) || !training::listed(o.model.transformer().connection))
    return {{raw_variant(streams::Form::layer_norm), Forgery::batch, kExchanged}};
  std::vector<WrongTraining> all;
  const nn::TransformerOptions& t = o.model.transformer();
  // Mapped storage cannot hold these: see nn/gpt.cpp and nn/branch.cpp.
  if ((o.model.flag("tied") && (t.affine || t.connection.bare_entry)) || t.branch.dropout > 0 ||
      t.branch.layer_scale > 0) {
    all.push_back({variant("raw_crms_norm"), Forgery::batch, kExchanged});
    if (t.affine) all.push_back({variant("raw_rms_norm"), Forgery::frozen_gains, "gains frozen"});
  } else {
    all.push_back({variant("projected_once")});
    if (!t.affine) all.push_back({variant("compressed_plain")});  // it cannot hold a gain apart from its readers
  }
  // The weights of a Pre-LN model hide this mistake; these show it.
  if (t.connection.bare_entry) all.push_back({variant("raw_rms_norm"), Forgery::centred_entry, "embeddings centred"});
  if (o.ranks == 1) return all;
  const bool even = o.batch / o.accumulate % o.ranks == 0;
  const auto of_ranks = [&](bool can_be, Forgery forgery, const char* fault) {
    if (can_be) all.push_back({raw_variant(streams::Form::rms_norm), forgery, fault});
  };
  of_ranks(true, Forgery::summed, "sum for mean");
  of_ranks(true, Forgery::left_out, "a rank left out");
  of_ranks(true, Forgery::added_twice, "a gradient summed twice");
  of_ranks(!even && !o.whole_parts, Forgery::unweighted, "ranks unweighted");
  of_ranks(even && !o.whole_parts && t.branch.dropout > 0, Forgery::same_draws, "equal dropout on all ranks");
  return all;
}

}  // namespace

std::vector<RunResult> wrong_records(const training::TrainingOptions& o) {
  std::vector<RunResult> records;
  for (const WrongTraining& w : wrong_trainings(o)) {
    records.push_back(record(w.variant));
    records.back().expected = Verdict::different;
    records.back().fault = w.fault;
    // A mistake of ranks shows in the first gradient. A wrong size may never be seen later, because clipping and Adam
    // undo it.
    records.back().same_start = w.forgery != Forgery::centred_entry && !of_ranks(w.forgery);
  }
  return records;
}

void add_wrong(Lockstep& all, const training::TrainingOptions& o, const nn::Module& initial,
               std::span<RunResult> records, const training::Examples& other) {
  size_t next = 0;
  for (const WrongTraining& w : wrong_trainings(o)) {
    RunResult& record = records[next++];
    training::TrainingOptions own = o;
    if (!of_ranks(w.forgery)) own.ranks = 1;  // the mistake does not need ranks
    auto training = std::make_unique<Forged>(own, *record.variant, w.forgery);
    training->exchange_batch(kNegativeSteps / 2, other);
    training->start_from(initial);
    all.add(std::move(training), record);
  }
}

}  // namespace isonorm::equivalence
