#include "equivalence/compare/parting.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/op_watch.h"
#include "core/printed.h"
#include "core/view.h"
#include "equivalence/lockstep/criterion.h"

namespace isonorm::equivalence {
namespace {

constexpr int kTraceControls = 2;
constexpr int64_t kMostTraced = int64_t{1} << 24;  // entries that a trace keeps

// The entries of a tensor in order of size.
struct Entries {
  std::vector<double> sorted;
  double largest = 0, norm = 0;

  Entries() = default;
  explicit Entries(const Tensor& x) : sorted(x.to_vector<double>()) {
    std::sort(sorted.begin(), sorted.end());
    for (const double v : sorted) norm += v * v, largest = std::max(largest, std::abs(v));
    norm = std::sqrt(norm);
  }
  bool varies() const { return sorted.size() > 1 && sorted.front() < sorted.back(); }
  // The largest difference of entries in order of size, relative to the largest of all.
  double distance(const Entries& o) const {
    double most = 0;
    for (size_t i = 0; i < sorted.size(); ++i) most = larger(most, std::abs(sorted[i] - o.sorted[i]));
    return most == 0 ? 0 : most / largest;
  }
  bool within(const Entries& o, double tolerance) const {
    const double root = std::sqrt(static_cast<double>(sorted.size()));
    return sorted.size() == o.sorted.size() && std::abs(norm - o.norm) <= tolerance * largest * root &&
           distance(o) <= tolerance;
  }
};

// A recorded result.
struct Traced {
  std::string op, path;
  Dims shape;
  Tensor result;  // in the graph
  Entries value;
  std::vector<size_t> from;        // the results that it was computed from
  std::vector<std::string> reads;  // the parameters
  std::string behind;              // the layer or parameter before it
  std::optional<Entries> gradient = {};
  double moved = 0, gradient_moved = 0;  // what controls do to it

  // "`linear` [4, 8] of q.weight in q"; of a result that is no layer's and reads no parameter also the layer before it.
  std::string name() const {
    std::string all = text('`', op, "` ", shape);
    if (!reads.empty()) all += " of " + reads.front();
    if (!path.empty()) all += " in " + path;
    if (reads.empty() && path.empty() && !behind.empty()) all += " behind " + behind;
    return all;
  }
};

struct Trace {
  std::vector<Traced> results;
  bool complete = true;
};

Trace trace(nn::Module& model, const std::vector<streams::NamedParameter>& parameters, const Trial& t, bool gradients) {
  Trace all;
  std::map<const autograd::Node*, size_t> first;  // of a node the first result
  std::map<const autograd::Node*, std::string> leaves;
  for (const streams::NamedParameter& p : parameters)
    if (p.tensor.impl().node) leaves[p.tensor.impl().node.get()] = p.name;
  int64_t entries = 0;
  const autograd::OpWatch watch([&](const autograd::Node& node, std::span<const Tensor* const> results) {
    std::vector<size_t> from;
    std::vector<std::string> reads;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const autograd::Edge& e = node.inputs[static_cast<int64_t>(i)];
      if (const auto at = first.find(e.node.get()); at != first.end())
        from.push_back(at->second + static_cast<size_t>(e.output));
      if (const auto at = leaves.find(e.node.get()); at != leaves.end()) reads.push_back(at->second);
    }
    std::string behind;
    for (const size_t i : from) {
      const Traced& before = all.results[i];
      behind = !before.path.empty() ? before.path : !before.reads.empty() ? before.reads.front() : before.behind;
    }
    first[&node] = all.results.size();
    for (const Tensor* r : results) {
      entries += r->numel();
      if (entries > kMostTraced) all.complete = false;
      const bool keep = all.complete && is_floating(r->dtype());
      all.results.push_back(
          {node.name, Scope::path(), r->shape(), *r, keep ? Entries(detach(*r)) : Entries(), from, reads, behind});
    }
  });
  Generator draws{t.seed, 0};
  const SameDraws same(draws);
  const Tensor loss = t.loss(model, t.batch);
  if (!gradients || all.results.empty() || !all.complete) return all;
  std::vector<Tensor> of;
  for (const Traced& r : all.results) of.push_back(r.result);
  const std::vector<Tensor> found = grad(std::span(&loss, 1), of);
  for (size_t i = 0; i < of.size(); ++i) all.results[i].gradient.emplace(found[i]);
  return all;
}

// How far controls move the results and gradients of A. False if a control does not run the same ops.
bool note_controls(Trial& t, Trace& a, bool gradients) {
  for (int c = 1; c <= kTraceControls; ++c) {
    const Restore restore(t.a);
    move_by_one_ulp(t.a, static_cast<uint64_t>(c));
    const Trace moved = trace(t.a, t.partners.a, t, gradients);
    if (moved.results.size() != a.results.size()) return false;
    for (size_t i = 0; i < a.results.size(); ++i) {
      Traced& r = a.results[i];
      const Traced& m = moved.results[i];
      if (m.value.sorted.size() != r.value.sorted.size()) return false;
      r.moved = larger(r.moved, m.value.distance(r.value));
      if (gradients) r.gradient_moved = larger(r.gradient_moved, m.gradient->distance(*r.gradient));
    }
  }
  return true;
}

double allowed(double moved, DType dtype) { return std::max(bound(moved, dtype), 4096 * epsilon(dtype)); }

// The results of B by the number of their entries.
using BySize = std::map<size_t, std::vector<const Traced*>>;

BySize by_size(const Trace& b) {
  BySize all;
  for (const Traced& r : b.results) all[r.value.sorted.size()].push_back(&r);
  return all;
}

std::vector<const Traced*> found_in(const BySize& b, const Traced& r, DType dtype) {
  std::vector<const Traced*> found;
  const auto at = b.find(r.value.sorted.size());
  if (at == b.end() || r.value.sorted.empty()) return found;
  for (const Traced* other : at->second)
    if (r.value.within(other->value, allowed(r.moved, dtype))) found.push_back(other);
  return found;
}

std::string listed_results(std::vector<const Traced*> results) {
  std::vector<std::string> said;
  for (const Traced* r : results)
    if (const std::string name = r->name(); std::find(said.begin(), said.end(), name) == said.end())
      said.push_back(name);
  std::string all;
  for (size_t i = 0; i < said.size(); ++i) all += (i == 0 ? "" : i + 1 < said.size() ? ", " : " and ") + said[i];
  return all;
}

Parting forwards_part(const Trace& a, const BySize& b, DType dtype) {
  const size_t n = a.results.size();
  std::vector<bool> counts(n), accounted(n), reaches(n);  // reaches: the loss is computed from it
  reaches[n - 1] = true;
  for (size_t i = n; i-- > 0;) {
    const Traced& r = a.results[i];
    const bool found = i + 1 < n && !found_in(b, r, dtype).empty();
    counts[i] = counts[i] || (found && r.value.varies());
    accounted[i] = counts[i] || found;
    for (const size_t from : r.from) {
      counts[from] = counts[from] || counts[i];
      reaches[from] = reaches[from] || reaches[i];
    }
  }
  for (size_t i = 0; i < n; ++i) {
    if (accounted[i] || !reaches[i]) continue;
    std::vector<const Traced*> before;
    for (const size_t from : a.results[i].from) before.push_back(&a.results[from]);
    const std::string next =
        text(a.results[i].name(), " is the first result of the first model that the second does not have");
    return {before.empty() ? "the forwards part where they begin: " + next
                           : text("the forwards agree up to ", listed_results(before), ": ", next),
            a.results[i].path};
  }
  return {};
}

std::string backwards_part(const Trial& t, const Trace& a, const BySize& b) {
  const DType dtype = t.dtype;
  double largest = 0;
  for (const Traced& r : a.results) largest = larger(largest, r.gradient->largest);
  size_t compared = 0;
  for (size_t i = a.results.size(); i-- > 0;) {
    const Traced& r = a.results[i];
    const std::vector<const Traced*> found = found_in(b, r, dtype);
    if (found.empty() || !r.value.varies() || r.gradient->largest < 1000 * epsilon(dtype) * largest) continue;
    ++compared;
    const double most = allowed(r.gradient_moved, dtype);
    if (std::any_of(found.begin(), found.end(),
                    [&](const Traced* o) { return r.gradient->within(*o->gradient, most); }))
      continue;
    std::vector<const Traced*> readers;
    for (const Traced& next : a.results)
      if (std::find(next.from.begin(), next.from.end(), i) != next.from.end()) readers.push_back(&next);
    return text("the backwards agree down to ", readers.empty() ? "the loss" : listed_results(readers),
                ": the gradient of ", r.name(), ", from which it is computed, differs");
  }
  std::string parameters;
  for (const Seen& s : t.gradients_seen())
    if (s.share(t.dtype) > 1) parameters += (parameters.empty() ? "" : ", ") + s.pair.name;
  return compared == 0 ? ""
                       : text("the gradients of all ", plural(static_cast<int64_t>(compared), "result"),
                              " that both models have agree: look at what leads from there to ", parameters);
}

}  // namespace

Parting where_they_part(Trial& t) {
  if (!t.spend(2 + kTraceControls)) return {};
  const bool gradients = t.loss_seen().share(t.dtype) <= 1;
  const Restore restore_a(t.a), restore_b(t.b);
  Trace a = trace(t.a, t.partners.a, t, gradients);
  const Trace b = trace(t.b, t.partners.b, t, gradients);
  if (a.results.empty() || b.results.empty() || !a.complete || !b.complete || !note_controls(t, a, gradients))
    return {};
  return gradients ? Parting{backwards_part(t, a, by_size(b)), ""} : forwards_part(a, by_size(b), t.dtype);
}

}  // namespace isonorm::equivalence
