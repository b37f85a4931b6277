#include "equivalence/lockstep/wrong_training.h"

#include "equivalence/lockstep/criterion.h"
#include "equivalence/lockstep/forged.h"

namespace isonorm::equivalence {
namespace {

struct WrongTraining {
  const char* variant;
  Forgery forgery = Forgery::none;
  const char* fault = "";
};
constexpr WrongTraining kConverted[] = {{"projected_once"}, {"compressed_plain"}};
constexpr WrongTraining kOthers[] = {{"raw_crms_norm", Forgery::batch, "one batch exchanged"},
                                     {"raw_rms_norm", Forgery::frozen_gains, "gains frozen"}};

std::span<const WrongTraining> wrong_trainings(const training::TrainingOptions& o) {
  const bool raw_only = (o.tied && o.affine) || o.branch.dropout > 0 || o.branch.layer_scale > 0;
  if (raw_only) return std::span(kOthers).first(o.affine ? 2 : 1);
  return std::span(kConverted).first(o.affine ? 1 : 2);  // compressed weights cannot hold a gain apart from its readers
}

}  // namespace

std::vector<RunResult> wrong_records(const training::TrainingOptions& o) {
  std::vector<RunResult> records;
  for (const WrongTraining& w : wrong_trainings(o)) {
    records.push_back(record(variant(w.variant)));
    records.back().expected = Verdict::different;
    records.back().fault = w.fault;
  }
  return records;
}

void add_wrong(Lockstep& all, const training::TrainingOptions& o, const training::ModelShape& shape,
               const nn::Module& initial, std::span<RunResult> records, const training::Examples& other) {
  size_t next = 0;
  for (const WrongTraining& w : wrong_trainings(o)) {
    RunResult& record = records[next++];
    auto training = std::make_unique<Forged>(o, shape, *record.variant, w.forgery);
    training->exchange_batch(kNegativeSteps / 2, other);
    training->start_from(initial);
    all.add(std::move(training), record);
  }
}

}  // namespace isonorm::equivalence
