#include "equivalence/causes/parting.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/op_watch.h"
#include "core/printed.h"
#include "equivalence/causes/moved_results.h"
#include "equivalence/lockstep/criterion.h"
#include "equivalence/lockstep/training.h"

namespace isonorm::equivalence {
namespace {

constexpr int kTraceControls = 2;
constexpr int64_t kMostTraced = int64_t{1} << 24;  // entries that a trace keeps

// The finite entries of a tensor in order of size, and how many others there are.
struct Entries {
  std::vector<double> sorted;
  size_t others = 0;
  double largest = 0, norm = 0;

  Entries() = default;
  explicit Entries(const Tensor& x) {
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
  bool varies() const { return sorted.size() > 1 && sorted.front() < sorted.back(); }
  bool fits(const Entries& o) const { return sorted.size() == o.sorted.size() && others == o.others; }
  // The largest difference between the sorted entries and `by` times another tensor's, relative to the largest.
  double distance(const Entries& o, double by = 1) const {
    double most = 0;
    for (size_t i = 0, n = sorted.size(); i < n; ++i)
      most = larger(most, std::abs(sorted[i] - by * o.sorted[by < 0 ? n - 1 - i : i]));
    return most == 0 ? 0 : most / largest;
  }
  bool within(const Entries& o, double tolerance) const {
    const double root = std::sqrt(static_cast<double>(sorted.size()));
    return fits(o) && std::abs(norm - o.norm) <= tolerance * largest * root && distance(o) <= tolerance;
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
  std::string previous;            // the layer or parameter before it
  std::optional<Entries> gradient = {};
  double moved = 0, gradient_moved = 0;  // how far controls move it

  // "`linear` [4, 8] of q.weight in q"; of a result that is no layer's and reads no parameter also the layer before it.
  std::string name() const {
    std::string all = text('`', op, "` ", shape);
    if (!reads.empty()) all += " of " + reads.front();
    if (!path.empty()) all += " in " + path;
    if (reads.empty() && path.empty() && !previous.empty()) all += " after " + previous;
    return all;
  }
};

struct Trace {
  std::vector<Traced> results;
  bool complete = true;
};

// control: the seed that moves every result; 0: no move.
Trace trace(nn::Module& model, const std::vector<streams::NamedParameter>& parameters, const Trial& t, bool gradients,
            uint64_t control = 0) {
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
  if (!gradients || all.results.empty() || !all.complete) return all;
  std::vector<Tensor> of;
  for (const Traced& r : all.results) of.push_back(r.result);
  const std::vector<Tensor> found = grad(loss, of);
  for (size_t i = 0; i < of.size(); ++i) all.results[i].gradient.emplace(found[i]);
  return all;
}

// How far controls move the results and gradients of A. False if a control does not run the same ops.
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
    if (r.value.within(other->value, bound(r.moved, dtype))) found.push_back(other);
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

// "; the second has `mul` [4, 5], which is 0.5 times it", if some result of B is a multiple of r.
std::string multiple_in(const Trace& a, const BySize& b, const Traced& r, DType dtype) {
  const auto at = b.find(r.value.sorted.size());
  if (at == b.end() || !r.value.varies()) return "";
  const double most = bound(r.moved, dtype);
  std::string found;
  for (const Traced* o : at->second)
    for (const double by : {o->value.norm / r.value.norm, -o->value.norm / r.value.norm}) {
      if (by == 0 || !o->value.fits(r.value) || !(o->value.distance(r.value, by) <= most)) continue;
      const bool taken = std::any_of(a.results.begin(), a.results.end(),
                                     [&](const Traced& other) { return other.value.within(o->value, most); });
      const std::string said = text("; the second has ", o->name(), ", which is ", printed("%.6g", by), " times it");
      if (!taken) return said;
      if (found.empty()) found = said;  // of a result that A has as well
    }
  return found;
}

Parting forwards_part(const Trial& t, const Trace& a, const BySize& b) {
  const size_t n = a.results.size();
  const DType dtype = t.dtype;
  // B's own loss is another one.
  const auto is_loss = [&](const Traced* o) {
    return t.within_loss({"", detach(o->result).to(DType::f64), t.loss_pair.pair.reference, t.loss_pair.pair.scale});
  };
  if (const auto scalars = b.find(1); scalars != b.end() && std::ranges::any_of(scalars->second, [&](const Traced* o) {
                                        return o->shape.rank == 0 && is_loss(o);
                                      }))
    return {"the second model has every result of the first, its loss among them: look at what it adds to the loss",
            ""};
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
    const Traced& r = a.results[i];
    if (accounted[i] || !reaches[i]) continue;
    std::vector<const Traced*> before;
    for (const size_t from : r.from) before.push_back(&a.results[from]);
    const std::string begin = before.empty() ? "the forwards part where they begin"
                                             : text("the forwards agree up to ", listed_results(before));
    const std::string none =
        b.contains(r.value.sorted.size()) || r.value.others > 0 ? "" : ", nor any of as many entries";
    return {text(begin, ": ", r.name(), " is the first result that the second model does not have", none,
                 multiple_in(a, b, r, dtype)),
            r.path};
  }
  return {};
}

// The results that were compared and are computed from result i, through others that were not compared.
std::vector<const Traced*> compared_after(const Trace& a, size_t i, const std::vector<bool>& compared) {
  std::vector<const Traced*> found;
  std::vector<bool> leads(a.results.size());  // i, and what is computed from it without a compared result between
  leads[i] = true;
  for (size_t k = i + 1; k < a.results.size(); ++k) {
    if (std::ranges::none_of(a.results[k].from, [&](size_t from) { return leads[from]; })) continue;
    if (compared[k])
      found.push_back(&a.results[k]);
    else
      leads[k] = true;
  }
  return found;
}

std::string backwards_part(const Trial& t, const Trace& a, const BySize& b) {
  const size_t n = a.results.size();
  double largest = 0;
  std::map<std::string, int> readers;  // of a parameter, how many
  for (const Traced& r : a.results) {
    largest = larger(largest, r.gradient->largest);
    for (const std::string& p : r.reads) ++readers[p];
  }
  std::set<std::string> differing;
  for (const TrialPair& g : t.gradients)
    if (g.differs) differing.insert(g.pair.name);
  std::vector<bool> compared(n);
  const auto down_to = [&](size_t i) {
    const std::vector<const Traced*> after = compared_after(a, i, compared);
    return text("the backwards agree down to ", after.empty() ? "the loss" : listed_results(after));
  };
  size_t count = 0;
  for (size_t i = n; i-- > 0;) {
    const Traced& r = a.results[i];
    const std::vector<const Traced*> found = found_in(b, r, t.dtype);
    if (found.empty() || !r.value.varies() || r.gradient->largest < 1000 * epsilon(t.dtype) * largest) continue;
    const double most = bound(r.gradient_moved, t.dtype);
    if (std::none_of(found.begin(), found.end(),
                     [&](const Traced* o) { return r.gradient->within(*o->gradient, most); }))
      return text(down_to(i), ": the gradient of ", r.name(), ", from which that is computed, differs");
    ++count, compared[i] = true;
    for (const std::string& p : r.reads)
      if (readers[p] == 1 && differing.contains(p))
        return text("the backwards agree down to ", r.name(), ": the gradient of ", p, ", which it reads, differs");
  }
  std::string parameters;
  for (const std::string& p : differing) parameters += (parameters.empty() ? "" : ", ") + p;
  return count == 0 ? ""
                    : text("the gradients of all ", plural(static_cast<int64_t>(count), "result"),
                           " that both models have agree: look at what leads from there to ", parameters);
}

}  // namespace

Parting where_they_part(Trial& t) {
  if (!t.spend(2 + kTraceControls)) return {};
  const bool gradients = !t.loss_pair.differs;
  Trace a, b;
  t.keep([&] { a = trace(t.a, t.of_a, t, gradients), b = trace(t.b, t.of_b, t, gradients); });
  if (a.results.empty() || b.results.empty() || !a.complete || !b.complete || !note_controls(t, a, gradients))
    return {};
  return gradients ? Parting{backwards_part(t, a, by_size(b)), ""} : forwards_part(t, a, by_size(b));
}

}  // namespace isonorm::equivalence
