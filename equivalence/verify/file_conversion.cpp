#include "equivalence/verify/file_conversion.h"

#include <algorithm>
#include <set>

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "equivalence/verify/reader_check.h"
#include "streams/stream.h"

namespace isonorm::equivalence {
namespace {

using Relation = EntryComparison::Relation;

constexpr int kNumberBits = 20;  // of the number of a piece within its unit

bool reads(const Unit& u) { return u.layout.places.front().role == streams::Role::reader || !u.layout.tied.empty(); }
bool writes(const Unit& u) { return u.layout.places.front().role == streams::Role::writer; }

// What was found about a piece, beside what was about those before it.
void add(EntryComparison& all, const EntryComparison& piece) {
  if (all.relation == Relation::none && !all.reason.empty()) return;
  if (piece.relation != Relation::second_rounded)
    all = piece, all.relation = Relation::none;
  else
    all.relation = piece.relation, all.share = std::max(all.share, piece.share);
}

std::vector<std::string> writers_of(const streams::Placement& layout) {
  std::vector<std::string> names;
  for (const streams::Place& p : layout.places)
    if (p.role == streams::Role::writer) names.push_back(p.name);
  if (!layout.recentred.empty()) names.push_back(layout.recentred);
  return names;
}

}  // namespace

FileConversion::FileConversion(LazyState file, streams::Placement layout, streams::Form to, std::optional<DType> dtype,
                               int64_t elements)
    : stored_file_(file),
      file_(with_gains(std::move(file), layout)),
      layout_(std::move(layout)),
      to_(to),
      dtype_(dtype) {
  check_forms(layout_, to);
  check_layout(file_.outline, layout_);
  units_ = units_of(file_.outline, layout_, elements);
  for (const streams::NormPlace& n : layout_.norms)
    for (const std::string* name : {&n.weight, &n.bias}) {
      if (n.folds || name->empty()) continue;
      const Tensor& stored = stored_file_.outline.at(*name);
      made_[*name] = {.shape = stored.shape(), .dtype = dtype_.value_or(stored.dtype()), .how = How::kept};
      order_.push_back(*name);
      changes_.push_back({*name, "unchanged: kept at its norm", {}, {}});
    }
}

// Calls visit(piece, its slices of the writer) until that gives false, and says whether it never did.
template <class F> bool FileConversion::each_piece(size_t unit, F&& visit) const {
  const Unit& u = units_[unit];
  TensorMap tensors;
  for (const std::string& name : u.names) tensors.add(name, file_.read(name));
  for (int64_t begin = 0; begin < u.slices; begin += u.block)
    if (!visit(piece_of(u, tensors, begin, std::min(begin + u.block, u.slices)),
               Slices{begin * u.rows, u.slices * u.rows}))
      return false;
  return true;
}

bool FileConversion::check(const std::function<bool()>& go_on) {
  NoGrad no_grad;
  const bool rounds = dtype_.value_or(coarsest(file_.outline)) != DType::f64;
  if (rounds) stored_.emplace();
  ReaderCheck exact(writers_of(layout_)), stored(writers_of(layout_));
  ZeroMeans means;
  for (size_t u = 0; u < units_.size(); ++u) {
    uint64_t number = uint64_t{u} << kNumberBits;
    const bool done = each_piece(u, [&](const Piece& p, Slices where) {
      if (!go_on()) return false;
      check_values(p.state, p.layout);
      const TensorMap before = centred(p.state, p.layout);
      const Conversion c = convert_piece(p.state, p.layout, to_, dtype_, means);
      note(u, c);
      add(exact_.entries, compare_convertible(before, p.layout, c.exact, c.layout));
      if (rounds) add(stored_->entries, compare_convertible(before, p.layout, c.state, c.layout));
      if (!writes(units_[u])) return true;
      exact.write(before, p.layout, c.exact, c.layout, number, where);
      if (rounds) stored.write(before, p.layout, c.state, c.layout, number, where);
      ++number;
      return true;
    });
    if (!done) return false;
    if (const auto mean = means.find(units_[u].names.front()); mean != means.end())
      mean->second.check_writer(mean->first);
  }
  for (size_t u = 0; u < units_.size(); ++u) {
    if (!reads(units_[u])) continue;
    uint64_t number = uint64_t{u} << kNumberBits;
    const bool done = each_piece(u, [&](const Piece& p, Slices) {
      if (!go_on()) return false;
      const TensorMap before = centred(p.state, p.layout);
      const Conversion c = convert_piece(p.state, p.layout, to_, dtype_, means);
      exact.read(before, p.layout, c.exact, c.layout, number);
      if (rounds) stored.read(before, p.layout, c.state, c.layout, number);
      ++number;
      return true;
    });
    if (!done) return false;
  }
  exact_.readers = exact.result(&exact_.deviations);
  if (rounds) stored_->readers = stored.result(&stored_->deviations);
  for (TensorChange& t : changes_) {
    t.after = made_.at(t.name).shape;
    if (const Tensor* old = file_.outline.find(t.name)) t.before = old->shape();
  }
  const auto no_head = [&](const std::string& name) {
    return std::none_of(layout_.tied.begin(), layout_.tied.end(),
                        [&](const streams::Layout::Tied& t) { return t.weight == name || t.bias == name; });
  };
  std::stable_partition(order_.begin(), order_.end(), no_head);
  std::stable_partition(changes_.begin(), changes_.end(), [&](const TensorChange& t) { return no_head(t.name); });
  changes_.insert(changes_.end(), dropped_.begin(), dropped_.end());
  return true;
}

// Takes down what a piece became: shapes grow along the axis that the unit is cut along.
void FileConversion::note(size_t unit, const Conversion& piece) {
  const Unit& u = units_[unit];
  const auto is_cut_as_the_first = [&](const std::string& name) {
    return name == u.names.front() || std::any_of(u.layout.tied.begin(), u.layout.tied.end(),
                                                  [&](const streams::Layout::Tied& t) { return t.weight == name; });
  };
  std::set<std::string> fresh, kept;
  for (const streams::NormPlace& n : piece.layout.norms) kept.insert({n.weight, n.bias});
  for (const auto& [name, tensor] : piece.state) {
    if (kept.contains(name)) continue;
    const int axis = u.axis < 0 || is_cut_as_the_first(name) ? u.axis : 0;
    const auto [at, is_new] = made_.try_emplace(name, Made{tensor.shape(), tensor.dtype(), unit, axis});
    if (!is_new)
      at->second.shape[axis] += tensor.size(axis);
    else
      order_.push_back(name), fresh.insert(name);
  }
  for (const TensorChange& t : piece.changes) {
    if (t.after && fresh.contains(t.name)) changes_.push_back({t.name, t.what, {}, {}});
    if (!t.after && std::none_of(dropped_.begin(), dropped_.end(), [&](const auto& d) { return d.name == t.name; }))
      dropped_.push_back(t);
  }
}

void FileConversion::complete(const TensorMap& outline, DType dtype) {
  order_.clear();
  for (const auto& [name, tensor] : outline) {
    order_.push_back(name);
    if (made_.contains(name)) continue;
    isonorm::check(name.ends_with("bias"), "convert: nothing became '", name, "' of the converted model");
    made_[name] = {.shape = tensor.shape(), .dtype = dtype, .how = How::created};
    changes_.push_back({name, "created: zeros", {}, tensor.shape()});
  }
}

Tensor FileConversion::make(const std::string& name, bool rounded) const {
  NoGrad no_grad;
  const Made& m = made_.at(name);
  const DType dtype = rounded || !is_floating(m.dtype) ? m.dtype : DType::f64;
  if (m.how == How::created) return zeros(m.shape, {dtype});
  if (m.how == How::kept) return rounded ? stored_file_.read(name).to(dtype) : file_.read(name).to(dtype);
  Tensor whole;
  int64_t reached = 0;
  ZeroMeans means;
  each_piece(m.unit, [&](const Piece& p, Slices) {
    const Conversion c = convert_piece(p.state, p.layout, to_, dtype_, means);
    const Tensor& part = (rounded ? c.state : c.exact).at(name);
    if (m.axis < 0) {
      whole = part;
      return true;
    }
    if (!whole.defined()) whole = empty(m.shape, {dtype});
    copy_into(narrow(whole, m.axis, reached, part.size(m.axis)), part);
    reached += part.size(m.axis);
    return true;
  });
  return whole;
}

LazyState FileConversion::made(bool rounded) const {
  LazyState state{{}, [this, rounded](const std::string& name) { return make(name, rounded); }};
  for (const std::string& name : order_) {
    const Made& m = made_.at(name);
    state.outline.add(name, outline(m.shape, rounded || !is_floating(m.dtype) ? m.dtype : DType::f64));
  }
  return state;
}

LazyState FileConversion::result() const { return made(true); }
LazyState FileConversion::result_in_f64() const { return made(false); }

LazyState FileConversion::before() const {
  const auto read = [this](const std::string& name) {
    TensorMap one;
    one.add(name, file_.read(name));
    return centred(one, layout_).at(name);
  };
  LazyState state{{}, read};
  for (const auto& [name, tensor] : file_.outline)
    state.outline.add(name, outline(tensor.shape(), is_floating(tensor.dtype()) ? DType::f64 : tensor.dtype()));
  return state;
}

}  // namespace isonorm::equivalence
