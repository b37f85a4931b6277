#include "equivalence/causes/cause.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/printed.h"
#include "equivalence/causes/traced.h"
#include "equivalence/judge/criterion.h"

namespace isonorm::equivalence {
namespace {

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

// True for the loss and for every result that the loss is computed from.
std::vector<bool> lead_to_loss(const Trace& t) {
  std::vector<bool> lead(t.results.size());
  lead[t.loss] = true;
  for (size_t i = lead.size(); i-- > 0;)
    if (lead[i])
      for (const size_t from : t.results[i].from) lead[from] = true;
  return lead;
}

// True if B's loss is computed from a number equal to A's loss.
bool adds_to_loss(const Trial& t, const Trace& b) {
  const std::vector<bool> lead = lead_to_loss(b);
  for (size_t i = 0; i < lead.size(); ++i) {
    const Traced& r = b.results[i];
    if (lead[i] && r.shape.rank == 0 && is_floating(r.result.dtype()) &&
        t.within_loss({"", detach(r.result).to(DType::f64), t.loss_pair.pair.reference, t.loss_pair.pair.scale}))
      return true;
  }
  return false;
}

// True for the results of A that agree with B:
//   - a result that is found in B
//   - a result with a found result computed from it that has no fewer entries
//   - a result with a found result computed from it, if nothing that differs is computed from it, too
// A found result of fewer entries, such as a mean, may hide a difference.
std::vector<bool> agreeing(const Trace& a, const BySize& b, const std::vector<bool>& lead, DType dtype) {
  const size_t n = a.results.size();
  std::vector<size_t> known(n);  // the entries of the largest result that is found and computed from it
  std::vector<bool> agree(n), leads_to_difference(n);
  for (size_t i = n; i-- > 0;) {
    const Traced& r = a.results[i];
    const size_t size = r.value.sorted.size();
    const bool found = i != a.loss && !found_in(b, r, dtype).empty();
    if (found && r.value.varies()) known[i] = std::max(known[i], size);
    agree[i] = found || (known[i] > 0 && (known[i] >= size || !leads_to_difference[i]));
    for (const size_t from : r.from) {
      if (agree[i]) known[from] = std::max(known[from], known[i]);
      if (!agree[i] && lead[i]) leads_to_difference[from] = true;
    }
  }
  return agree;
}

Parting forwards_part(const Trial& t, const Trace& a, const Trace& second) {
  const BySize b = by_size(second);
  const size_t n = a.results.size();
  const DType dtype = t.dtype;
  if (adds_to_loss(t, second))
    return {
        "the second model has every result of the first, its loss among them: look at the terms that it adds to the "
        "loss",
        ""};
  const std::vector<bool> lead = lead_to_loss(a), agree = agreeing(a, b, lead, dtype);
  for (size_t i = 0; i < n; ++i) {
    const Traced& r = a.results[i];
    if (agree[i] || !lead[i]) continue;
    std::vector<const Traced*> before;
    for (const size_t from : r.from) before.push_back(&a.results[from]);
    const std::string begin = before.empty() ? "the forwards differ from the start"
                                             : text("the forwards agree up to ", listed_results(before));
    const std::string none = b.contains(r.value.sorted.size()) || r.value.others > 0
                                 ? ""
                                 : text(", nor any result of ", r.value.sorted.size(), " entries");
    return {text(begin, ": ", r.name(), " is the first result that the second model does not have", none,
                 multiple_in(a, b, r, dtype)),
            r.path};
  }
  return {};
}

// The results that were compared and are computed from result i, through others that were not compared.
std::vector<const Traced*> compared_after(const Trace& a, size_t i, const std::vector<bool>& compared) {
  std::vector<const Traced*> found;
  std::vector<bool> leads(a.results.size());  // i, and results computed from it without a compared result between
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
      return text(down_to(i), ": the next gradient, of ", r.name(), ", differs");
    ++count, compared[i] = true;
    for (const std::string& p : r.reads)
      if (readers[p] == 1 && differing.contains(p))
        return text("the backwards agree down to ", r.name(), ": the gradient of its parameter ", p, " differs");
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
  return gradients ? Parting{backwards_part(t, a, by_size(b)), ""} : forwards_part(t, a, b);
}

}  // namespace isonorm::equivalence
