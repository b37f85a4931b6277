#include "equivalence/convert/pieces.h"

#include <algorithm>
#include <set>

#include "autograd/ops/shape.h"
#include "streams/stream.h"

namespace isonorm::equivalence {
namespace {

using streams::Role;

class Cutter {
 public:
  Cutter(const TensorMap& outline, const streams::Placement& layout, int64_t elements)
      : outline_(outline), layout_(layout), elements_(elements) {
    for (const streams::Place& p : layout.places)
      if (p.role == Role::reader) biases_.insert(p.bias);
  }

  Unit unit(const streams::Place& p) const {
    Unit u;
    u.layout.form = layout_.form, u.layout.width = layout_.width, u.layout.rotation = layout_.rotation;
    u.layout.places.push_back(p);
    u.layout.places.back().said = true;  // that was asked of the whole, whose sizes a piece does not have
    take(u, p.name), take(u, p.scale);
    std::set<std::string> norms = {p.norm};
    for (const streams::Layout::Tied& t : layout_.tied)
      if (t.table == p.name) u.layout.tied.push_back(t), norms.insert(t.norm);
    for (streams::NormPlace n : layout_.norms) {
      if (!norms.contains(n.name)) n.weight.clear(), n.bias.clear();
      take(u, n.weight), take(u, n.bias);
      u.layout.norms.push_back(n);
    }
    if (p.role == Role::reader && outline_.find(p.bias)) {
      take(u, u.bias = p.bias);
      for (const streams::Place& q : layout_.places)
        if (q.name == p.bias) u.layout.places.push_back(q);
    }
    cut(u, p);
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
    if (p.role == Role::writer) u.rows = t.numel() / t.size(p.dim) / u.slices;
    u.block = std::max(int64_t{1}, elements_ / (t.numel() / u.slices));
  }

  const TensorMap& outline_;
  const streams::Placement& layout_;
  int64_t elements_;
  std::set<std::string> biases_;
};

}  // namespace

std::vector<Unit> units_of(const TensorMap& outline, const streams::Placement& layout, int64_t elements) {
  const Cutter cutter(outline, layout, elements);
  std::vector<Unit> units;
  for (const streams::Place& p : layout.places)
    if (!cutter.is_bias(p)) units.push_back(cutter.unit(p));
  return units;
}

Piece piece_of(const Unit& u, const TensorMap& tensors, int64_t begin, int64_t end) {
  Piece piece{{}, u.layout};
  if (u.axis >= 0)
    for (streams::Place& p : piece.layout.places)
      for (int64_t* row : {&p.blind_begin, &p.blind_end}) *row = std::clamp(*row - begin, int64_t{0}, end - begin);
  for (const std::string& name : u.names) {
    const Tensor& t = tensors.at(name);
    const bool first = name == u.names.front();
    piece.state.add(name,
                    u.axis < 0 || !(first || name == u.bias) ? t : narrow(t, first ? u.axis : 0, begin, end - begin));
  }
  return piece;
}

}  // namespace isonorm::equivalence
