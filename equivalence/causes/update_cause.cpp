#include "equivalence/causes/cause.h"

#include <algorithm>
#include <cmath>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "core/printed.h"
#include "core/view.h"
#include "equivalence/convert/state.h"

namespace isonorm::equivalence {
namespace {

// The largest error of a correct formula for a step: rounding, since it uses other ops than the optimizer.
double left_by_rounding(DType dtype) { return dtype == DType::f64 ? 1e-12 : 1e-5; }

// A formula with rate, decay and eps is read from no fewer entries.
constexpr int64_t kLeastFitted = 8;

UpdateRows one_list(const std::vector<const UpdateRows*>& all) {
  std::vector<Tensor> before, gradient, after;
  const auto flat = [](const Tensor& x) { return reshape(x, {x.numel()}).to(DType::f64); };
  for (const UpdateRows* r : all)
    before.push_back(flat(r->before)), gradient.push_back(flat(r->gradient)), after.push_back(flat(r->after));
  return {cat(before), cat(gradient), cat(after)};
}

class UpdateCauses {
 public:
  UpdateCauses(const std::vector<std::string>& names, const std::vector<std::string>& differing,
               const ComparedUpdate& update, const StepMaker& make, const StepMaker& make_second)
      : names_(names),
        update_(update),
        make_(make),
        make_second_(make_second),
        left_(left_by_rounding(update.a[0].after.dtype())) {
    for (size_t i = 0; i < names.size(); ++i)
      if (std::find(differing.begin(), differing.end(), names[i]) != differing.end()) which_.push_back(i);
  }

  Explained run(bool mapped) {
    NoGrad no_grad;
    mapped ? commuting() : formulas();
    if (found_.cause.empty() && update_.step > 1 && !mapped && new_optimizers_agree())
      found_.place =
          "new optimizers take the same step from these weights and gradients: look at the state that an optimizer "
          "keeps from "
          "step to step (moments, a count of steps, a rate that changes)";
    return std::move(found_);
  }

 private:
  // The weights after a new optimizer's step from the same weights and gradients; empty if there is no optimizer.
  static std::vector<Tensor> step_of(const StepMaker& make, const std::vector<UpdateRows>& rows) {
    std::vector<Tensor> leaves;
    for (const UpdateRows& r : rows) {
      leaves.push_back(require_grad(detached::clone(r.before)));
      set_grad(leaves.back(), detached::clone(r.gradient));
    }
    const auto optimizer = make(leaves);
    if (!optimizer) return {};
    optimizer->step();
    return leaves;
  }

  // True if an optimizer from `make` takes the step from the same weights and gradients.
  bool steps(const std::vector<UpdateRows>& rows) const {
    const std::vector<Tensor> after = step_of(make_, rows);
    if (after.empty()) return false;
    for (size_t i = 0; i < rows.size(); ++i)
      if (!(off_by(detach(after[i]), rows[i].after, 0) <= left_)) return false;
    return true;
  }

  // True if new optimizers of both models take the same step, from the weights and gradients of the second.
  bool new_optimizers_agree() const {
    const std::vector<Tensor> a = step_of(make_, update_.b), b = step_of(make_second_, update_.b);
    if (a.empty() || b.empty()) return false;
    for (size_t i = 0; i < a.size(); ++i)
      if (!(off_by(detach(b[i]), detach(a[i]), 0) <= left_)) return false;
    return true;
  }

  // The changes that two steps of a new optimizer make to the weights of B that differ. Both steps begin with the same
  // weights; the second step has the gradients of the first one in reverse order.
  std::vector<Tensor> two_steps(const StepMaker& make) const {
    std::vector<Tensor> leaves, moved;
    for (const UpdateRows& r : update_.b) leaves.push_back(require_grad(detached::clone(r.before)));
    const auto optimizer = make(leaves);
    if (!optimizer) return {};
    for (const bool reversed : {false, true}) {
      for (size_t i = 0; i < leaves.size(); ++i) {
        const Tensor& g = update_.b[i].gradient;
        const Tensor flat = reshape(g, {g.numel()});
        copy_into(detach(leaves[i]), update_.b[i].before);
        set_grad(leaves[i], detached::clone(reshape(reversed ? flip(flat, {0}) : flat, g.shape())));
      }
      optimizer->step();
      std::vector<Tensor> all;
      for (const size_t i : which_)
        all.push_back(
            reshape(detach(leaves[i]).to(DType::f64) - update_.b[i].before.to(DType::f64), {leaves[i].numel()}));
      moved.push_back(cat(all));
    }
    return moved;
  }

  // True if new optimizers differ at a second step in another way than at the first: the factor of the first steps is
  // gone, or the distance is a hundred times larger. Then no option of a first step is the cause: many optimizers begin
  // alike.
  bool parts_otherwise() const {
    const std::vector<Tensor> a = two_steps(make_), b = two_steps(make_second_);
    if (a.empty() || b.empty()) return false;
    const double most = update_.b[0].before.dtype() == DType::f64 ? 1e-6 : 1e-2;
    const auto by_factor = [&](size_t step) {
      const double size = sum(square(a[step])).item(), factor = sum(a[step] * b[step]).item() / size;
      return std::sqrt(sum(square(b[step] - a[step] * factor)).item() / size) <= most * std::abs(factor);
    };
    const auto distance = [&](size_t step) {
      return std::sqrt(sum(square(b[step] - a[step])).item() / sum(square(a[step])).item());
    };
    return (by_factor(0) && !by_factor(1)) || distance(1) > 100 * distance(0);
  }

  void commuting() {
    found_.tried.push_back("an update that does not commute with the map");
    if (steps(update_.a) && steps(update_.b))
      found_.cause =
          "an update that does not commute with the map: the optimizer gives both steps, each from weights and "
          "gradients in the "
          "coordinates of its model";
  }

  void formulas() {
    if (which_.empty() || stands_still()) return;
    if (const auto a = formula_of(update_.a))
      explain_second(*a);
    else if (const auto b = formula_of(update_.b);
             b && explains("the kind of weight decay", b->coupled_instead(), update_.a))
      found_.cause =
          "another kind of weight decay: the second model takes it off the weights, the first adds it to the gradient" +
          where();
    if (!found_.cause.empty() && parts_otherwise()) found_.cause.clear();
  }

  bool stands_still() {
    found_.tried.push_back("weights that do not move");
    if (!std::all_of(which_.begin(), which_.end(),
                     [this](size_t i) { return same_bytes(update_.b[i].before, update_.b[i].after); }))
      return false;
    found_.cause = text("weights that do not move: the second model's update leaves ", names_of_some(), " as before; ",
                        update_.step > 1 ? "the step is skipped, or its rate is 0"
                                         : "its optimizer does not have them, or its rate is 0");
    return true;
  }

  // Fitted to all parameters or, if that fails, to the parameters that differ: groups may have options of their own.
  std::optional<UpdateModel> formula_of(const std::vector<UpdateRows>& side) const {
    std::vector<const UpdateRows*> all;
    for (const UpdateRows& r : side) all.push_back(&r);
    if (const auto formula = fit_update(one_list(all), left_)) return formula;
    const UpdateRows some = differing(side);
    return some.before.numel() >= kLeastFitted ? fit_update(some, left_) : std::nullopt;
  }

  // The tensors that differ, joined.
  UpdateRows differing(const std::vector<UpdateRows>& side) const {
    std::vector<const UpdateRows*> some;
    for (const size_t i : which_) some.push_back(&side[i]);
    return one_list(some);
  }

  // True if the formula gives the step of every tensor that differs.
  bool explains(const char* name, const UpdateModel& formula, const std::vector<UpdateRows>& side) {
    found_.tried.push_back(name);
    return std::all_of(which_.begin(), which_.end(), [&](size_t i) {
      const UpdateRows rows = one_list({&side[i]});
      return off_by(formula.of(rows), rows.after, 0) <= left_;
    });
  }

  // a: the first model's formula.
  void explain_second(const UpdateModel& a) {
    const UpdateRows b = differing(update_.b);
    if (const UpdateModel m = a.with_rate_of(b); explains("a learning rate", m, update_.b))
      found_.cause =
          text("another learning rate", a.adam ? "" : ", or a gradient that is scaled, as by clipping",
               ": the second model has ", printed("%.6g", m.rate), ", the first ", printed("%.6g", a.rate), where());
    else if (const UpdateModel d = a.with_decay_of(b); explains("weight decay", d, update_.b))
      found_.cause = text("another weight decay: the second model takes off ", decay_text(d.decay, a),
                          " of each weight per step, the first ", decay_text(a.decay, a), where());
    else if (a.decay > 0 && explains("the kind of weight decay", a.coupled_instead(), update_.b))
      found_.cause =
          "another kind of weight decay: the second model adds it to the gradient, the first takes it off the "
          "weights" +
          where();
    else if (a.adam)
      if (const UpdateModel e = a.with_eps_of(b); explains("eps", e, update_.b))
        found_.cause = text("another eps of Adam: the second model has ", printed("%.3g", e.eps), ", the first ",
                            printed("%.3g", a.eps), where());
  }

  std::string names_of_some() const {
    return text(names_[which_[0]], which_.size() > 1 ? text(" and ", which_.size() - 1, " more") : "");
  }
  // Empty if every tensor differs.
  std::string where() const { return which_.size() == names_.size() ? "" : ", in " + names_of_some(); }

  // 0 if rounding of the rate hides it.
  static std::string decay_text(double decay, const UpdateModel& a) {
    return printed("%.3g", std::abs(decay) < 1e-9 * std::abs(a.rate) ? 0.0 : decay);
  }

  const std::vector<std::string>& names_;
  const ComparedUpdate& update_;
  const StepMaker &make_, &make_second_;
  std::vector<size_t> which_;  // the tensors that differ
  const double left_;          // by rounding
  Explained found_;
};

}  // namespace

Explained explain_update(const std::vector<std::string>& names, const std::vector<std::string>& differing,
                         const ComparedUpdate& update, bool mapped, const StepMaker& make,
                         const StepMaker& make_second) {
  return UpdateCauses(names, differing, update, make, make_second).run(mapped);
}

}  // namespace isonorm::equivalence
