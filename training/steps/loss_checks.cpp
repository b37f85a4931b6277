#include "training/steps/loss_checks.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_set>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/shape.h"
#include "core/kernels/copy.h"
#include "core/printed.h"
#include "core/system/warning.h"
#include "core/view.h"
#include "nn/modes.h"

namespace isonorm::training {

using distributed::Group;

namespace {

class Aside {
 public:
  explicit Aside(const nn::Module& model) : draws_(default_generator()) {
    std::set<const void*> parameters;  // frozen parameters, too: no forward pass changes them
    for (const Tensor& p : model.parameters()) parameters.insert(&p.impl());
    for (const nn::NamedParameter& p : model.named_state())
      if (!parameters.contains(&p.tensor.impl())) buffers_.emplace_back(p.tensor, detached::clone(p.tensor));
  }
  ~Aside() {
    for (const auto& [x, before] : buffers_) copy_into(x, before);
  }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

 private:
  const NoGrad no_grad_;
  const DrawsFrom draws_;
  std::vector<std::pair<Tensor, Tensor>> buffers_;  // buffers and their values, which a forward pass may change
};

double coarsest_epsilon(const nn::Module& model, const Tensor& loss) {
  double eps = epsilon(loss.dtype());
  for (const Tensor& p : model.parameters()) eps = std::max(eps, epsilon(p.dtype()));
  return eps;
}

bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

void check_same_loss(Group& group, const TrainedTogether& t, const Examples& batch, int64_t rows) {
  const Aside aside(t.model);
  const int64_t calls = distributed::calls_of_this_thread();
  const Examples some = batch.rows(0, rows);
  const Tensor loss = t.loss(t.model, some);
  double bound = 0;
  if (distributed::calls_of_this_thread() != calls) {
    const auto terms = static_cast<double>(some.targets.numel() * group.size());
    bound = 8 * coarsest_epsilon(t.model, loss) * std::sqrt(terms) * std::max(1.0, std::abs(loss.item()));
  }
  const std::vector<double> all =
      group.all_gather(from_vector(std::vector{loss.item(), bound}, {1, 2})).to_vector<double>();
  for (size_t at = 2; at < all.size(); at += 2)
    if (!same_number(all[at], all[0]) && !(std::abs(all[at] - all[0]) <= std::max(all[1], all[at + 1])))
      throw distributed::Disagreement(
          text(group.name_of(static_cast<int>(at / 2)), " has another loss of the same rows than ", group.name_of(0),
               ": ", printed("%.17g and %.17g", all[at], all[0])),
          0);
}

namespace {

// The shares of a batch that differentiate() takes, in its order: the micro-batches or, with ranks, each rank's rows
// in each micro-batch. Empty shares are left out.
std::vector<Rows> shares_of(const StepOptions& o, int64_t examples) {
  const int64_t size = size_of_part(examples, o.accumulate);
  const int ranks = o.group && !o.rank_invariant ? o.group->size() : 1;
  std::vector<Rows> shares;
  for (int64_t part = 0; part < o.accumulate; ++part)
    for (int rank = 0; rank < ranks; ++rank) {
      const Rows rows = rows_of(rank, ranks, part * size, size);
      if (rows.count > 0) shares.push_back(rows);
    }
  return shares;
}

// A share's contribution to the loss.
struct Term {
  double sum, weight;
  double eps;  // of the coarsest dtype among parameters and sum
};

Term term_of(const TrainedTogether& t, const Examples& some) {
  if (t.loss.is_sum()) {
    const WeightedSum s = t.loss.sum(t.model, some);
    return {s.sum.item(), s.weight.item(), coarsest_epsilon(t.model, s.sum)};
  }
  const Tensor mean = t.loss(t.model, some);
  const double weight = weight_of_mean(some).item();
  return {mean.item() * weight, weight, coarsest_epsilon(t.model, mean)};
}

enum class Verdict { equal, different, unknown };

// Two losses of a pair of shares: computed from their rows together, and combined from the losses of the shares.
struct Losses {
  Verdict verdict;
  double together = 0, combined = 0;
};

Losses losses_of_pair(const TrainedTogether& t, const Examples& batch, const Rows& first, const Rows& second) {
  const Generator before = default_generator();
  const int64_t calls = distributed::calls_of_this_thread(), count = first.count + second.count;
  const auto called_group = [&] { return distributed::calls_of_this_thread() != calls; };
  const auto term = [&](int64_t begin, int64_t rows) { return term_of(t, batch.rows(begin, rows)); };
  try {
    const Term a = term(first.begin, first.count), b = term(second.begin, second.count), all = term(first.begin, count);
    const double weight = a.weight + b.weight, together = all.sum / all.weight, combined = (a.sum + b.sum) / weight,
                 size = std::max(std::abs(together), (std::abs(a.sum) + std::abs(b.sum)) / std::abs(weight));
    if (!std::isfinite(together) || !std::isfinite(combined)) return {Verdict::unknown};
    if (std::abs(together - combined) <= std::sqrt(all.eps) * size + 32 * all.eps) return {Verdict::equal};
    const Generator& now = default_generator();
    if (called_group() || now.seed != before.seed || now.offset != before.offset) return {Verdict::unknown};
    if (term(first.begin, count).sum != all.sum) return {Verdict::unknown};
    return {Verdict::different, together, combined};
  } catch (const std::exception&) {
    if (called_group()) throw;  // the other ranks wait for this one
    return {Verdict::unknown};  // the objective does not accept this number of rows
  }
}

// While it lives, every rank can run a sharded model without the other ranks.
class Gathered {
 public:
  explicit Gathered(parallel::Parts* parts) : parts_(parts) {
    if (parts_) parts_->gather();
  }
  ~Gathered() {
    if (parts_) parts_->release();
  }
  Gathered(const Gathered&) = delete;
  Gathered& operator=(const Gathered&) = delete;

 private:
  parallel::Parts* const parts_;
};

std::string range(const Rows& rows) { return text(rows.begin, " to ", rows.begin + rows.count - 1); }

}  // namespace

void check_shares(const TrainedTogether& t, const Examples& batch) {
  const std::vector<Rows> shares = shares_of(t.options, batch.count());
  const int64_t pairs = std::ssize(shares) - 1;
  if (pairs < 1) return;
  const Aside aside(t.model);
  const Gathered gathered(t.options.parts);
  Group alone;
  Group& group = t.options.group ? *t.options.group : alone;
  std::vector<double> own(4);  // 1 if a pair differs; the first such pair and its losses
  {
    const nn::EvaluationMode evaluation;
    for (int64_t at = group.rank(); at < pairs + group.rank(); at += group.size()) {
      const int64_t pair = at % pairs;
      const auto i = static_cast<size_t>(pair);
      const auto [verdict, together, combined] = losses_of_pair(t, batch, shares[i], shares[i + 1]);
      if (verdict == Verdict::different && own[0] == 0) own = {1, static_cast<double>(pair), together, combined};
    }
  }
  const std::vector<double> all = group.all_gather(from_vector(own, {1, 4})).to_vector<double>();
  for (size_t at = 0; at < all.size(); at += 4) {
    if (all[at] == 0) continue;
    const auto pair = static_cast<size_t>(all[at + 1]);
    const Rows &first = shares[pair], &second = shares[pair + 1];
    if (group.any(losses_of_pair(t, batch, first, second).verdict == Verdict::equal)) continue;
    throw distributed::Disagreement(
        text("step: rows ", range({first.begin, first.count + second.count}), " have the loss ",
             printed("%.9g, and %.9g", all[at + 2], all[at + 3]), " if the losses of rows ", range(first), " and ",
             range(second),
             " are combined: micro-batches and ranks would train another objective. Return a WeightedSum over rows "
             "(training/steps/objective.h). If the loss compares rows with each other (negatives of the batch), set "
             "accumulate to 1, and on ranks let the objective gather their rows (parallel::gathered_parts)"),
        0);
  }
}

void UnownedLeaves::note(const Tensor& loss) {
  std::unordered_set<const autograd::Node*> seen;
  std::vector<std::shared_ptr<autograd::Node>> ahead = {loss.impl().node};
  while (!ahead.empty()) {
    const std::shared_ptr<autograd::Node> node = std::move(ahead.back());
    ahead.pop_back();
    if (!node || !seen.insert(node.get()).second) continue;
    if (node->is_leaf() && !node->owned && !node->frozen) leaves_.push_back(node);
    for (const autograd::Edge& e : node->inputs) ahead.push_back(e.node);
  }
}

void UnownedLeaves::warn_of_rest(const Examples& batch) const {
  const std::vector<Tensor> given = batch.tensors();
  for (const std::weak_ptr<autograd::Node>& noted : leaves_) {
    const std::shared_ptr<autograd::Node> leaf = noted.lock();
    if (!leaf || !leaf->gradient.defined()) continue;
    if (std::ranges::any_of(given, [&](const Tensor& x) { return x.impl().node == leaf; })) continue;
    warn(text("step: a tensor of shape ", leaf->outputs[0].shape,
              " gets a gradient, and nothing trains it: no module has "
              "registered it, and no optimizer has it. A member that trains is nn::Parameter& w = add_parameter(\"w\", "
              "...); of another tensor take detach()"));
  }
}

}  // namespace isonorm::training
