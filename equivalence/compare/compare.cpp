#include "equivalence/compare/compare.h"

#include <algorithm>
#include <span>

#include "equivalence/compare/found.h"
#include "equivalence/compare/own_trial.h"

namespace isonorm::equivalence {
namespace {

class Drawn {
 public:
  Drawn(nn::Module& a, nn::Module& b, const Partners& partners, const Objective& loss, const CompareOptions& o)
      : a_(a),
        b_(b),
        partners_(partners),
        loss_(loss),
        o_(o),
        dtype_(dtype_of(partners)),
        points_(dtype_, o.points, o.may_be_identical) {}

  Comparison run(const Batches& batches) {
    const Restore restore_a(a_), restore_b(b_);
    Generator generator{o_.seed, 0};
    Explained explained;
    for (int point = 1; point <= o_.points && !points_.differs(); ++point) {
      const training::Examples batch = batches(point - 1);
      draw_parameters(a_, generator);
      carry_over(partners_);
      const std::vector<Seen> seen = look(batch);
      points_.note(point, seen);
      if (!points_.differs()) continue;
      explained = explain(batch, seen, kCauses * point * (2 + o_.controls));
    }
    Comparison result = points_.found();
    result.place = explained.place, result.cause = explained.cause, result.tried = explained.tried;
    return result;
  }

  // At the present parameters.
  Explained explain_here(const training::Examples& batch, int budget) {
    const Restore restore_a(a_), restore_b(b_);
    const std::vector<Seen> seen = look(batch);
    if (points_.worst(seen).share(dtype_) > 1) return explain(batch, seen, budget);
    return {
        .place =
            "new models with these weights agree on these examples: look at what a model keeps from step to step (a "
            "counter, a cache, a buffer)"};
  }

 private:
  Explained explain(const training::Examples& batch, const std::vector<Seen>& seen, int budget) {
    OwnTrial trial(a_, b_, partners_, loss_, batch, o_.seed, seen, budget);
    return explain_difference(trial);
  }

  // Loss and gradients of the two on a batch, with the modules as they are.
  std::vector<Seen> look(const training::Examples& batch) {
    OwnTraining first(a_, partners_.a, loss_, o_.seed), second(b_, partners_, loss_, o_.seed);
    first.differentiate(batch);
    const auto moved = controls(first, batch);
    second.differentiate(batch);
    std::vector<const Training*> noted;
    for (const auto& control : moved) noted.push_back(control.get());
    std::vector<Seen> seen{see_loss(second, first, noted)};
    for (Seen& s : see_gradients(second, first, noted)) seen.push_back(std::move(s));
    return seen;
  }

  // The controls of `first` on a batch, which it has noted.
  std::vector<std::unique_ptr<OwnTraining>> controls(OwnTraining& first, const training::Examples& batch) {
    std::vector<std::unique_ptr<OwnTraining>> all;
    for (int c = 1; c <= o_.controls; ++c) {
      const Restore restore(a_);
      move_by_one_ulp(a_, static_cast<uint64_t>(c));
      all.push_back(std::make_unique<OwnTraining>(a_, partners_.a, loss_, o_.seed));
      all.back()->differentiate(batch);
      first.note_control(*all.back());
    }
    return all;
  }

  nn::Module &a_, &b_;
  const Partners& partners_;
  const Objective& loss_;
  const CompareOptions& o_;
  DType dtype_;
  Points points_;
};

}  // namespace

Explained explain_at(nn::Module& a, nn::Module& b, const Partners& partners, const Objective& loss,
                     const training::Examples& batch, const CompareOptions& o, int budget) {
  carry_over(partners);
  return Drawn(a, b, partners, loss, o).explain_here(batch, budget);
}

Comparison compare_gradients(nn::Module& a, nn::Module& b, const ParameterMap& map, const Objective& loss,
                             const Batches& batches, const CompareOptions& o) {
  check(o.points > 0 && o.controls > 0, "compare_gradients: ", o.points, " points and ", o.controls,
        " controls, expected at least 1 of each");
  Comparison failed;
  const Partners found = partners(a, b, map, &failed.reason);
  if (!failed.reason.empty()) return failed;
  return Drawn(a, b, found, loss, o).run(batches);
}

}  // namespace isonorm::equivalence
