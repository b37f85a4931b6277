#include "equivalence/lockstep.h"

#include <cmath>

namespace isonorm::equivalence {

Lockstep::Lockstep(const ProofOptions& options, const ModelShape& shape, const nn::Module& initial,
                   RunResult& reference, std::span<RunResult> controls, std::span<RunResult> runs) {
  const auto add = [&](RunResult& r, bool control) {
    auto trainee = std::make_unique<Trainee>(options, shape, *r.variant);
    trainee->start_from(initial);
    if (r.seed != 0) move_by_one_ulp(trainee->model(), r.seed);
    r.parameters = trainee->model().parameter_count();
    members_.push_back({std::move(trainee), &r, control});
  };
  add(reference, false);
  for (RunResult& r : controls) add(r, true);
  for (RunResult& r : runs) add(r, false);
}

void Lockstep::step(const Examples& batch, double lr) {
  const Trainee& reference = *members_.front().trainee;
  for (Member& m : members_) {
    m.trainee->differentiate(batch);
    m.trainee->update(lr);
    m.record->losses.push_back(m.trainee->loss());
    if (m.trainee.get() == &reference) continue;
    const double base = reference.loss();
    const double d[] = {std::abs(m.trainee->loss() - base) / std::abs(base), m.trainee->gradient_deviation(reference),
                        m.trainee->weight_deviation(reference)};
    m.record->deviations.loss.push_back(d[0]);
    m.record->deviations.gradient.push_back(d[1]);
    m.record->deviations.weight.push_back(d[2]);
    double& largest = m.control ? control_ : worst_;
    for (double v : d) largest = larger(largest, v);
  }
}

}  // namespace isonorm::equivalence
