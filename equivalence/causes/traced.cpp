#include "equivalence/causes/traced.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "core/printed.h"
#include "equivalence/causes/moved_results.h"
#include "equivalence/judge/criterion.h"
#include "equivalence/lockstep/training.h"

namespace isonorm::equivalence {
namespace {

constexpr int64_t kMostTraced = int64_t{1} << 24;  // entries that a trace keeps

}  // namespace

Entries::Entries(const Tensor& x) {
  for (const double v : x.to_vector<double>()) {
    if (!std::isfinite(v)) {
      ++others;
      continue;
    }
    sorted.push_back(v);
    norm += v * v, largest = std::max(largest, std::abs(v));
  }
  std::sort(sorted.begin(), sorted.end());
  norm = std::sqrt(norm);
}

double Entries::distance(const Entries& o, double by) const {
  double most = 0;
  for (size_t i = 0, n = sorted.size(); i < n; ++i)
    most = larger(most, std::abs(sorted[i] - by * o.sorted[by < 0 ? n - 1 - i : i]));
  return most == 0 ? 0 : most / largest;
}

bool Entries::within(const Entries& o, double tolerance) const {
  const double root = std::sqrt(static_cast<double>(sorted.size()));
  return fits(o) && std::abs(norm - o.norm) <= tolerance * largest * root && distance(o) <= tolerance;
}

std::string Traced::name() const {
  std::string all = text('`', op, "` ", shape);
  if (!reads.empty()) all += " of " + reads.front();
  if (!path.empty()) all += " in " + path;
  if (reads.empty() && path.empty() && !previous.empty()) all += " after " + previous;
  return all;
}

Trace trace(nn::Module& model, const std::vector<streams::NamedParameter>& parameters, const Trial& t, bool gradients,
            uint64_t control) {
  Trace all;
  std::map<const autograd::Node*, size_t> first;  // the first result of a node
  std::map<const autograd::Node*, std::string> leaves;
  for (const streams::NamedParameter& p : parameters)
    if (p.tensor.impl().node) leaves[p.tensor.impl().node.get()] = p.name;
  int64_t entries = 0;
  std::optional<MovedResults> rounding;
  if (control > 0) rounding.emplace(control);
  const autograd::OpWatch watch([&](const autograd::Node& node, std::span<const Tensor* const> results) {
    std::vector<size_t> from;
    std::vector<std::string> reads;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const autograd::Edge& e = node.inputs[static_cast<int64_t>(i)];
      if (const auto at = first.find(e.node.get()); at != first.end())
        from.push_back(at->second + static_cast<size_t>(e.output));
      if (const auto at = leaves.find(e.node.get()); at != leaves.end()) reads.push_back(at->second);
    }
    std::string previous;
    for (const size_t i : from) {
      const Traced& before = all.results[i];
      previous = !before.path.empty() ? before.path : !before.reads.empty() ? before.reads.front() : before.previous;
    }
    first[&node] = all.results.size();
    for (const Tensor* r : results) {
      entries += r->numel();
      if (entries > kMostTraced) all.complete = false;
      const bool keep = all.complete && is_floating(r->dtype());
      all.results.push_back(
          {node.name, Scope::path(), r->shape(), *r, keep ? Entries(detach(*r)) : Entries(), from, reads, previous});
    }
  });
  Generator draws{t.seed, 0};
  const SameDraws same(draws);
  const Tensor loss = t.loss(model, t.batch);
  all.loss = all.results.empty() ? 0 : all.results.size() - 1;
  if (const auto at = first.find(loss.impl().node.get()); at != first.end()) all.loss = at->second;
  if (!gradients || all.results.empty() || !all.complete) return all;
  std::vector<Tensor> of;
  for (const Traced& r : all.results) of.push_back(r.result);
  const std::vector<Tensor> found = grad(loss, of);
  for (size_t i = 0; i < of.size(); ++i) all.results[i].gradient.emplace(found[i]);
  return all;
}

bool note_controls(Trial& t, Trace& a, bool gradients) {
  for (int c = 1; c <= kTraceControls; ++c) {
    Trace moved;
    t.keep([&] {
      move_by_one_ulp(t.a, static_cast<uint64_t>(c));
      moved = trace(t.a, t.of_a, t, gradients, static_cast<uint64_t>(c));
    });
    if (moved.results.size() != a.results.size()) return false;
    for (size_t i = 0; i < a.results.size(); ++i) {
      Traced& r = a.results[i];
      const Traced& m = moved.results[i];
      if (!m.value.fits(r.value)) return false;
      r.moved = larger(r.moved, m.value.distance(r.value));
      if (gradients) r.gradient_moved = larger(r.gradient_moved, m.gradient->distance(*r.gradient));
    }
  }
  return true;
}

}  // namespace isonorm::equivalence
