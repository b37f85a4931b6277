#include "equivalence/convert/pieces.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "autograd/ops/shape.h"
#include "streams/stream.h"

namespace isonorm::equivalence {
namespace {

using streams::Plan;

// Makes the units of a checkpoint.
class Cutter {
 public:
  Cutter(const TensorMap& outline, const Plan& plan, int64_t elements)
      : outline_(outline), plan_(plan), elements_(elements) {}

  // The unit of a writer, a reader, or a tensor that is neither.
  Unit unit(const std::string& name) const {
    const Plan::Writer* writer = plan_.writer(name);
    const Plan::Reader* reader = plan_.reader(name);
    Unit u = start(name);
    if (writer) u.plan.writers.push_back(*writer), take(u, writer->scale);
    if (!writer && !reader) u.plan.others.push_back({name});
    for (const Plan::Reader& r : plan_.readers)
      if (r.tensor() == name) u.plan.readers.push_back(r);
    for (Plan::Norm& n : u.plan.norms) {
      if (!u.plan.is_read(n) && !u.plan.is_behind_table(n)) n.weight.clear(), n.bias.clear();
      take(u, n.weight), take(u, n.bias);
    }
    if (reader && outline_.find(reader->bias)) take(u, u.bias = reader->bias);
    return u;
  }

  // A unit of this tensor alone, with the whole plan.
  Unit alone(const std::string& name) const {
    Unit u{plan_, {name}};
    cut(u);
    return u;
  }

  // The unit of a norm's gain or bias that no reader reads through, or of a tensor that the plan does not mention.
  Unit unread(const std::string& name) const {
    Unit u = start(name);
    for (Plan::Norm& n : u.plan.norms)
      for (std::string* other : {&n.weight, &n.bias})
        if (*other != name) other->clear();
    return u;
  }

 private:
  Unit start(const std::string& name) const {
    Unit u;
    u.plan.form = plan_.form, u.plan.width = plan_.width, u.plan.norms = plan_.norms;
    u.plan.blind = plan_.blind, u.plan.recentred = plan_.recentred;
    u.plan.rotation = plan_.rotation, u.plan.rotation_error = plan_.rotation_error;
    u.names = {name};
    cut(u);
    return u;
  }

  static void take(Unit& u, const std::string& name) {
    if (!name.empty() && std::ranges::find(u.names, name) == u.names.end()) u.names.push_back(name);
  }

  void cut(Unit& u) const {
    const std::string& name = u.names.front();
    const Tensor& t = outline_.at(name);
    u.axis = plan_.dim_of(name) == 0 ? 1 : 0;
    if (u.axis >= t.rank() || t.numel() == 0) {
      u.axis = -1;
      return;
    }
    u.slices = t.size(u.axis);
    u.block = std::max(int64_t{1}, elements_ / (t.numel() / u.slices));
  }

  const TensorMap& outline_;
  const Plan& plan_;
  int64_t elements_;
};

// The names under which another checkpoint may have this unit.
std::vector<std::string> names_elsewhere(const Unit& u) {
  std::vector<std::string> names = {u.names.front()};
  for (const Plan::Reader& r : u.plan.readers)
    if (r.tensor() == u.names.front()) names.insert(names.end(), {r.name, r.bias});
  std::erase(names, "");
  return names;
}

}  // namespace

std::vector<Unit> units_of(const TensorMap& outline, const Plan& plan, int64_t elements) {
  const Cutter cutter(outline, plan, elements);
  std::set<std::string> first, taken;  // the names with which units begin
  for (const Plan::Writer& w : plan.writers) first.insert(w.name);
  for (const Plan::Reader& r : plan.readers) first.insert(r.tensor());
  for (const Plan::Other& o : plan.others) first.insert(o.name);
  std::vector<Unit> units;
  for (const auto& [name, _] : outline) {
    if (!first.contains(name)) continue;
    units.push_back(cutter.unit(name));
    taken.insert(units.back().names.begin(), units.back().names.end());
  }
  for (const auto& [name, _] : outline)
    if (!taken.contains(name)) units.push_back(cutter.unread(name));
  return units;
}

std::vector<Unit> tensors_alone(const TensorMap& outline, const Plan& plan, int64_t elements) {
  const Cutter cutter(outline, plan, elements);
  std::vector<Unit> units;
  for (const auto& [name, _] : outline) units.push_back(cutter.alone(name));
  return units;
}

bool reads(const Unit& u) { return !u.plan.readers.empty(); }
bool writes(const Unit& u) { return !u.plan.writers.empty(); }

bool reads(const UnitPair& pair) {
  const auto read = [](const Unit& u) { return reads(u); };
  return std::ranges::any_of(pair.a, read) || std::ranges::any_of(pair.b, read);
}
bool writes(const UnitPair& pair) {
  const auto write = [](const Unit& u) { return writes(u); };
  return std::ranges::any_of(pair.a, write) || std::ranges::any_of(pair.b, write);
}

std::vector<UnitPair> in_pairs(std::vector<Unit> a, std::vector<Unit> b) {
  std::vector<UnitPair> pairs;
  std::map<std::string, size_t> place;  // in `pairs`, by name
  const auto put = [&](Unit& unit, std::vector<Unit> UnitPair::*side) {
    const std::vector<std::string> names = names_elsewhere(unit);
    std::set<size_t> there;
    for (const std::string& name : names)
      if (const auto at = place.find(name); at != place.end()) there.insert(at->second);
    const size_t here = there.empty() ? pairs.size() : *there.begin();
    if (there.empty()) pairs.emplace_back();
    for (size_t other : there) {
      if (other == here) continue;
      for (auto units : {&UnitPair::a, &UnitPair::b})
        std::ranges::move(std::exchange(pairs[other].*units, {}), std::back_inserter(pairs[here].*units));
      for (auto& [_, at] : place)
        if (at == other) at = here;
    }
    for (const std::string& name : names) place[name] = here;
    (pairs[here].*side).push_back(std::move(unit));
  };
  for (Unit& unit : a) put(unit, &UnitPair::a);
  for (Unit& unit : b) put(unit, &UnitPair::b);
  std::erase_if(pairs, [](const UnitPair& p) { return p.a.empty() && p.b.empty(); });
  for (UnitPair& pair : pairs) {
    std::vector<Unit*> all;
    for (std::vector<Unit>* units : {&pair.a, &pair.b})
      for (Unit& u : *units) all.push_back(&u);
    const auto cut = [&](const Unit* u) { return u->axis >= 0 && u->slices == all.front()->slices; };
    const bool alike = std::ranges::all_of(all, cut);
    int64_t block = all.front()->block;
    for (const Unit* u : all) block = std::min(block, u->block);
    for (Unit* u : all)
      if (alike)
        u->block = block;
      else
        u->axis = -1, u->slices = u->block = 1;
  }
  return pairs;
}

Piece piece_of(const std::vector<Unit>& units, const TensorMap& tensors, const Slices& slices,
               const std::set<std::string>& half) {
  Piece piece{{}, {}, slices};
  const int64_t begin = slices.begin, count = slices.end - slices.begin;
  for (const Unit& u : units) {
    Plan plan = u.plan;
    if (u.axis >= 0)
      for (auto& [name, rows] : plan.blind)
        for (int i : {0, 1}) rows[i] = std::clamp(rows[i] - begin, int64_t{0}, count);
    for (const std::string& name : u.names) {
      if (piece.state.find(name)) continue;
      const Tensor& t = tensors.at(name);
      if (half.contains(name)) piece.half.insert(name);
      const bool first = name == u.names.front();
      piece.state.add(name, u.axis < 0 || !(first || name == u.bias) ? t : narrow(t, first ? u.axis : 0, begin, count));
    }
    if (&u == &units.front()) {
      piece.plan = std::move(plan);
      continue;
    }
    std::ranges::move(plan.writers, std::back_inserter(piece.plan.writers));
    std::ranges::move(plan.readers, std::back_inserter(piece.plan.readers));
    std::ranges::move(plan.others, std::back_inserter(piece.plan.others));
    for (size_t i = 0; i < plan.norms.size(); ++i)  // each unit lists all norms
      if (piece.plan.norms[i].weight.empty() && piece.plan.norms[i].bias.empty())
        piece.plan.norms[i] = std::move(plan.norms[i]);
  }
  return piece;
}

}  // namespace isonorm::equivalence
