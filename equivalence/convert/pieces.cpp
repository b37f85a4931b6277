#include "equivalence/convert/pieces.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "autograd/ops/norm.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "streams/stream.h"

namespace isonorm::equivalence {
namespace {

using streams::Role;

class Cutter {
 public:
  Cutter(const TensorMap& outline, const streams::Plan& plan, int64_t elements)
      : outline_(outline), plan_(plan), elements_(elements) {
    for (const streams::Place& p : plan.places)
      if (p.role == Role::reader) biases_.insert(p.bias);
  }

  Unit unit(const streams::Place& p) const {
    Unit u;
    u.plan.form = plan_.form, u.plan.width = plan_.width, u.plan.recentred = plan_.recentred;
    u.plan.rotation = plan_.rotation, u.plan.rotation_error = plan_.rotation_error;
    u.plan.places.push_back(p);
    u.plan.places.back().said = true;  // checked for the whole; a piece has other sizes
    take(u, p.name), take(u, p.scale);
    std::set<std::string> norms = {p.norm};
    for (const streams::Layout::Tied& t : plan_.tied)
      if (t.table == p.name) u.plan.tied.push_back(t), norms.insert(t.norm);
    for (streams::NormPlace n : plan_.norms) {
      if (!norms.contains(n.name)) n.weight.clear(), n.bias.clear();
      take(u, n.weight), take(u, n.bias);
      u.plan.norms.push_back(n);
    }
    if (p.role == Role::reader && outline_.find(p.bias)) {
      take(u, u.bias = p.bias);
      for (const streams::Place& q : plan_.places)
        if (q.name == p.bias) u.plan.places.push_back(q);
    }
    cut(u, p);
    return u;
  }

  // A unit of this tensor alone, with the whole plan.
  Unit alone(const std::string& name) const {
    Unit u{plan_, {name}};
    const auto place = std::ranges::find(plan_.places, name, &streams::Place::name);
    cut(u, place == plan_.places.end() ? streams::Place{.name = name} : *place);
    return u;
  }

  // A unit for a norm's gain or bias that no reader reads through, or for a tensor that the plan does not mention.
  Unit unread(const std::string& name) const {
    Unit u = alone(name);
    u.plan.places.clear(), u.plan.tied.clear();
    for (streams::NormPlace& n : u.plan.norms)
      for (std::string* other : {&n.weight, &n.bias})
        if (*other != name) other->clear();
    return u;
  }

  bool is_bias(const streams::Place& p) const { return p.role == Role::neutral && biases_.contains(p.name); }

 private:
  void take(Unit& u, const std::string& name) const {
    if (!name.empty() && std::find(u.names.begin(), u.names.end(), name) == u.names.end()) u.names.push_back(name);
  }

  void cut(Unit& u, const streams::Place& p) const {
    const Tensor& t = outline_.at(p.name);
    u.axis = p.role != Role::neutral && p.dim == 0 ? 1 : 0;
    if (u.axis >= t.rank() || t.numel() == 0) {
      u.axis = -1;
      return;
    }
    u.slices = t.size(u.axis);
    u.block = std::max(int64_t{1}, elements_ / (t.numel() / u.slices));
  }

  const TensorMap& outline_;
  const streams::Plan& plan_;
  int64_t elements_;
  std::set<std::string> biases_;
};

// The names under which another checkpoint may have this unit.
std::vector<std::string> called(const Unit& u) {
  std::vector<std::string> names = {u.names.front()};
  for (const streams::Place& p : u.plan.places)
    if (p.name == names.front()) names.push_back(p.bias);
  for (const streams::Layout::Tied& t : u.plan.tied)
    if (t.table == u.names.front()) names.insert(names.end(), {t.weight, t.bias});
  std::erase(names, "");
  return names;
}

}  // namespace

Tensor by_rows(const Tensor& x, int dim, int64_t parts) {
  check(dim >= 0 && dim < x.rank(), "stream: a tensor of shape ", x.shape(), " has no dimension ", dim);
  std::vector<int> order;
  for (int i = 0; i < x.rank(); ++i)
    if (i != dim) order.push_back(i);
  order.push_back(dim);
  const int64_t length = x.size(dim) / parts;
  return reshape(permute(x, order), {length == 0 ? 0 : x.numel() / length, length});
}

Tensor behind_norm(const TensorMap& state, const streams::Plan& plan, const streams::Place& writer,
                   const Tensor& rows) {
  if (writer.norm.empty()) return rows;
  const streams::NormPlace* n = plan.find_norm(writer.norm);
  check(n != nullptr, "stream: the rows of '", writer.name, "' go through norm '", writer.norm,
        "', which is not there");
  const auto of = [&](const std::string& name) {
    return name.empty() ? Tensor() : detach(state.at(name)).to(DType::f64);
  };
  return normalize(rows, {.kind = NormKind::layer, .eps = n->eps}, of(n->weight), of(n->bias));
}

std::vector<Unit> units_of(const TensorMap& outline, const streams::Plan& plan, int64_t elements) {
  const Cutter cutter(outline, plan, elements);
  std::vector<Unit> units;
  std::set<std::string> taken;
  for (const streams::Place& p : plan.places) {
    if (cutter.is_bias(p)) continue;
    units.push_back(cutter.unit(p));
    taken.insert(units.back().names.begin(), units.back().names.end());
  }
  for (const auto& [name, _] : outline)
    if (!taken.contains(name)) units.push_back(cutter.unread(name));
  return units;
}

std::vector<Unit> tensors_alone(const TensorMap& outline, const streams::Plan& plan, int64_t elements) {
  const Cutter cutter(outline, plan, elements);
  std::vector<Unit> units;
  for (const auto& [name, _] : outline) units.push_back(cutter.alone(name));
  return units;
}

bool reads(const Unit& u) {
  return !u.plan.places.empty() && (u.plan.places.front().role == Role::reader || !u.plan.tied.empty());
}
bool writes(const Unit& u) { return !u.plan.places.empty() && u.plan.places.front().role == Role::writer; }

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
    const std::vector<std::string> names = called(unit);
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
    streams::Plan plan = u.plan;
    if (u.axis >= 0)
      for (streams::Place& p : plan.places)
        for (int64_t* row : {&p.blind_begin, &p.blind_end}) *row = std::clamp(*row - begin, int64_t{0}, count);
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
    std::ranges::move(plan.places, std::back_inserter(piece.plan.places));
    std::ranges::move(plan.tied, std::back_inserter(piece.plan.tied));
    for (size_t i = 0; i < plan.norms.size(); ++i)  // each unit lists all norms
      if (piece.plan.norms[i].weight.empty() && piece.plan.norms[i].bias.empty())
        piece.plan.norms[i] = std::move(plan.norms[i]);
  }
  return piece;
}

}  // namespace isonorm::equivalence
