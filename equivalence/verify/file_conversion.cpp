#include "equivalence/verify/file_conversion.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "equivalence/verify/reader_check.h"
#include "equivalence/convert/state.h"
#include "streams/stream.h"

namespace isonorm::equivalence {
namespace {

// Checks the pieces of a result against the pieces of the source.
struct Check {
  EntryCheck entries;
  ReaderCheck readers;

  Check(const streams::Plan& before, const streams::Plan& after) : readers(before, after) {}
  void add(const Piece& before, const Piece& after, bool last, bool again) {
    if (!again) entries.add(before, after);
    if (!entries.comparable()) return;
    last ? readers.read(before, after) : readers.write(before, after);
  }
  ConversionFindings result() const {
    ConversionFindings found;
    found.entries = entries.result(), found.readers = readers.result(&found.deviations);
    return found;
  }
};

}  // namespace

FileConversion::FileConversion(LazyState file, streams::Plan plan, streams::Form to, std::optional<NumberFormat> format,
                               int64_t elements)
    : stored_file_(file), file_(with_gains(std::move(file), plan)), plan_(std::move(plan)), to_(to), format_(format) {
  check_forms(plan_, to);
  units_ = units_of(file_.outline, plan_, elements);
  for (const streams::Plan::Norm& n : plan_.norms)
    for (const std::string* name : {&n.weight, &n.bias}) {
      if (n.folds || name->empty()) continue;
      made_[*name] = {.shape = stored_file_.outline.at(*name).shape(),
                      .format = format_.value_or(stored_file_.format(*name)),
                      .how = How::kept};
      changes_.push_back({*name, "unchanged: kept at its norm", {}, {}});
    }
}

template <class F> bool FileConversion::each_piece_of(size_t unit, F&& visit) const {
  const std::vector<Unit> one = {units_[unit]};
  TensorMap tensors;
  for (const std::string& name : one[0].names) tensors.add(name, file_.read(name));
  return each_piece(one, [&](const Slices& slices) { return visit(piece_of(one, tensors, slices, file_.half)); });
}

bool FileConversion::check(const std::function<bool()>& go_on) {
  NoGrad no_grad;
  const bool rounds = !(format_.value_or(coarsest(file_.outline, file_.half)) == DType::f64);
  streams::Plan result = plan_;
  result.form = to_;
  Check exact(plan_, result), stored(plan_, result);
  ZeroMeans means;
  const bool done = writers_first(units_, [&](size_t u, bool last) {
    const bool again = last && writes(units_[u]);
    const bool whole = each_piece_of(u, [&](const Piece& p) {
      if (!go_on()) return false;
      if (!again) check_values(p.state, p.plan);
      const Piece before{centred(p.state, p.plan), p.plan, p.slices};
      const Conversion c = convert_piece(p, to_, format_, means);
      if (!again && p.slices.begin == 0) note(u, c);
      exact.add(before, {c.exact, c.plan, p.slices}, last, again);
      if (rounds) stored.add(before, {c.state, c.plan, p.slices, c.half}, last, again);
      return true;
    });
    if (const auto mean = means.find(units_[u].names.front()); whole && mean != means.end())
      mean->second.check_writer(mean->first);
    return whole;
  });
  if (!done) return false;
  exact_ = exact.result();
  if (rounds) stored_ = stored.result();
  std::map<std::string, size_t> place;
  for (const std::string& name : order_of_result(plan_, units_))
    if (made_.contains(name)) place.emplace(name, place.size()), order_.push_back(name);
  std::ranges::stable_sort(changes_, {}, [&](const TensorChange& t) { return place.at(t.name); });
  for (TensorChange& t : changes_) {
    t.after = made_.at(t.name).shape;
    if (const Tensor* old = file_.outline.find(t.name)) t.before = old->shape();
  }
  changes_.insert(changes_.end(), dropped_.begin(), dropped_.end());
  return true;
}

void FileConversion::note(size_t unit, const Conversion& piece) {
  const Unit& u = units_[unit];
  for (const auto& [name, tensor] : piece.state) {
    if (made_.contains(name)) continue;  // kept at its norm
    const bool cut_as_the_first = name == u.names.front() || u.plan.reader(name);
    Made m{tensor.shape(), {tensor.dtype(), piece.half.contains(name)}, unit, cut_as_the_first ? u.axis : 0};
    if (u.axis < 0)
      m.axis = -1;
    else
      m.shape[m.axis] = u.slices;
    made_[name] = m;
  }
  for (const TensorChange& t : piece.changes) {
    std::vector<TensorChange>& to = t.after ? changes_ : dropped_;
    if (std::ranges::find(to, t.name, &TensorChange::name) == to.end()) to.push_back(t);
  }
}

void FileConversion::complete(const TensorMap& outline, NumberFormat format) {
  order_.clear();
  for (const auto& [name, tensor] : outline) {
    order_.push_back(name);
    if (made_.contains(name)) continue;
    isonorm::check(name.ends_with("bias"), "convert: nothing became '", name, "' of the converted model");
    made_[name] = {.shape = tensor.shape(), .format = format, .how = How::created};
    changes_.push_back({name, "created: zeros", {}, tensor.shape()});
  }
}

Tensor FileConversion::make(const std::string& name, bool rounded) const {
  NoGrad no_grad;
  const Made& m = made_.at(name);
  const DType dtype = rounded || !is_floating(m.format.dtype) ? m.format.dtype : DType::f64;
  if (m.how == How::created) return zeros(m.shape, {dtype});
  if (m.how == How::kept)
    return rounded ? isonorm::rounded(stored_file_.read(name), m.format, name) : file_.read(name).to(dtype);
  Tensor whole;
  int64_t reached = 0;
  ZeroMeans means;
  each_piece_of(m.unit, [&](const Piece& p) {
    const Conversion c = convert_piece(p, to_, format_, means);
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
    state.outline.add(name, outline(m.shape, rounded || !is_floating(m.format.dtype) ? m.format.dtype : DType::f64));
    if (rounded && m.format.half) state.half.insert(name);
  }
  return state;
}

LazyState FileConversion::result() const { return made(true); }
LazyState FileConversion::result_in_f64() const { return made(false); }

LazyState FileConversion::before() const {
  const auto read = [this](const std::string& name) {
    TensorMap one;
    one.add(name, file_.read(name));
    return centred(one, plan_).at(name);
  };
  LazyState state{{}, read};
  for (const auto& [name, tensor] : file_.outline)
    state.outline.add(name, outline(tensor.shape(), is_floating(tensor.dtype()) ? DType::f64 : tensor.dtype()));
  return state;
}

}  // namespace isonorm::equivalence
