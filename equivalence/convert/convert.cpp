#include "equivalence/convert/convert.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "autograd/grad_mode.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "equivalence/convert/rows.h"
#include "equivalence/convert/state.h"
#include "equivalence/convert/sum_rounding.h"
#include "equivalence/judge/pairs.h"
#include "streams/map.h"
#include "training/steps/loop.h"
#include "streams/rotation.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

namespace {

using streams::Form;
using streams::Map;
using streams::Plan;
using streams::Role;

// [.., parts d, ..] as [.., parts, d, ..], for a reader of several rows side by side. The stream's dimension is then
// dim + 1.
Tensor split(const Tensor& x, int dim, int64_t parts) {
  Dims shape;
  for (int i = 0; i < x.rank(); ++i) {
    if (i == dim) shape.push_back(parts);
    shape.push_back(i == dim ? x.size(i) / parts : x.size(i));
  }
  return reshape(x, shape);
}
Tensor joined(const Tensor& x, int dim) {
  Dims shape;
  for (int i = 0; i < x.rank(); ++i)
    if (i != dim) shape.push_back(i == dim + 1 ? x.size(dim) * x.size(i) : x.size(i));
  return reshape(x, shape);
}

// Reshapes v [d] so that it multiplies dimension `dim` of a tensor of this rank.
Tensor along(const Tensor& v, int dim, int rank) {
  Dims shape;
  for (int i = 0; i < rank; ++i) shape.push_back(i == dim ? v.numel() : 1);
  return reshape(v, shape);
}

class PieceConverter {
 public:
  PieceConverter(const Piece& piece, Form to, std::optional<NumberFormat> format, ZeroMeans& means)
      : piece_(piece), state_(piece.state), from_(piece.plan), to_(to), format_(format), means_(means) {
    result_.plan.form = to;
    result_.plan.width = from_.width, result_.plan.recentred = from_.recentred, result_.plan.blind = from_.blind;
  }

  Conversion run() {
    for (Plan::Norm n : from_.norms) {
      if (n.folds) n.weight.clear(), n.bias.clear();
      for (const std::string* kept : {&n.weight, &n.bias})
        if (!kept->empty()) keep_at(n, *kept);
      n.plus_one = false;
      result_.plan.norms.push_back(n);
    }
    for (const Plan::Writer& w : from_.writers) write(w);
    for (const Plan::Reader& r : from_.readers) read(r);
    for (const Plan::Other& o : from_.others) keep(o);
    for (const std::string& scale : scales_) drop(scale, "folded into its writer");
    for (const Plan::Norm& n : from_.norms) {
      const bool table = from_.is_behind_table(n);
      for (const std::string* name : {&n.weight, &n.bias})
        if (n.folds) drop(*name, table ? "the table's rows went through its norm" : "folded into its readers");
    }
    return std::move(result_);
  }

 private:
  Tensor exact(const std::string& name) const { return detach(state_.at(name)).to(DType::f64); }

  // A writer or reader of the source (stream along `dim`) as the Pre-LN model has it, or unchanged if it will be
  // rotated.
  Tensor raw(const Tensor& x, Role role, int dim, std::string& what) const {
    if (from_.stored_width() == from_.width || from_.rotation.defined()) return x;
    say(what, "expanded");
    return row_of(from_.form).map(role, from_.width).right_inverse()(x, dim);
  }

  Tensor mapped(const Tensor& x, Role role, int dim, std::string& what) const {
    if (from_.rotation.defined()) {
      say(what, "rotated");
      return streams::times(x, dim, from_.rotation);
    }
    const streams::FormRow& to = row_of(to_);
    const Map map = to.map(role, from_.width);
    if (map.outputs() < map.inputs()) say(what, role == Role::writer ? "recentred, compressed" : "compressed");
    if (role != Role::writer || !to.zero_mean_writers()) return map(x, dim);
    say(what, "recentred");
    return map(map(x, dim), dim);  // the second time removes the mean that rounding left
  }

  static void say(std::string& what, const char* step) { what += text(what.empty() ? "" : ", ", step); }

  // sum_dim: the axis along which rounding keeps sums; -1: none.
  void put(const std::string& name, const Tensor& value, NumberFormat format, const std::string& what,
           std::optional<Dims> before, int sum_dim = -1) {
    const NumberFormat stored = format_.value_or(format);
    result_.exact.add(name, value);
    result_.state.add(name,
                      sum_dim >= 0 ? rounded_with_sum(value, sum_dim, stored, name) : rounded(value, stored, name));
    if (stored.half) result_.half.insert(name);
    result_.changes.push_back({name, what.empty() ? "unchanged" : what, before, value.shape()});
  }

  void drop(const std::string& name, const char* why) {
    if (!name.empty()) result_.changes.push_back({name, text("dropped: ", why), state_.at(name).shape(), {}});
  }

  // Keeps a norm's gain or bias at the norm. If a gain is stored as 1+w, w is rounded.
  void keep_at(const Plan::Norm& n, const std::string& name) {
    const double apart = n.plus_one && name == n.weight ? 1 : 0;
    const Tensor value = exact(name);
    const NumberFormat stored = format_.value_or(piece_.format(name));
    result_.exact.add(name, value);
    result_.state.add(
        name, apart == 0 ? rounded(value, stored, name) : rounded(value - apart, stored, name).to(DType::f64) + apart);
    if (stored.half && apart == 0) result_.half.insert(name);
    result_.changes.push_back({name, "unchanged: kept at its norm", value.shape(), value.shape()});
  }

  // Keeps a tensor, in the requested format if there is one. Infinity and NaN stay.
  void keep(const Plan::Other& o) {
    const Tensor& t = state_.at(o.name);
    const bool floating = is_floating(t.dtype());
    const NumberFormat own = piece_.format(o.name), stored = floating ? format_.value_or(own) : own;
    result_.exact.add(o.name, floating ? exact(o.name) : t);
    result_.state.add(o.name, stored == own ? t : rounded(t, stored, o.name));
    if (stored.half) result_.half.insert(o.name);
    result_.changes.push_back({o.name, "unchanged", t.shape(), t.shape()});
    result_.plan.others.push_back(o);
  }

  void write(const Plan::Writer& w) {
    std::string what;
    Tensor x = raw(exact(w.name), Role::writer, w.dim, what);
    if (w.norm >= 0) {
      say(what, "rows put through their norm");
      x = behind_norm(state_, from_, w, x);
    }
    if (!w.scale.empty()) {
      say(what, "layer scale folded");
      x = x * along(exact(w.scale), w.dim, x.rank());
      scales_.insert(w.scale);
    }
    const NumberFormat format = piece_.format(w.name);
    if (row_of(from_.form).zero_mean_writers()) means_[w.name].add(x, w.dim, format);
    const Tensor mapped_x = mapped(x, Role::writer, w.dim, what);
    put(w.name, mapped_x, format, what, state_.at(w.name).shape(), row_of(to_).rounds_with_sum ? w.dim : -1);
    result_.plan.writers.push_back({.name = w.name, .dim = w.dim});
  }

  // f A (gain n + offset) + b = f (A diag(gain)) n + (b + f A offset), f the norm's factor. The bias is computed from
  // the original weight. weight: from split().
  void fold(Tensor& weight, Tensor& bias, const Plan::Reader& r, std::string& what, std::string& bias_what) const {
    const Plan::Norm& norm = from_.norms[r.norm];
    if (!norm.folds) return;
    const int dim = r.dim + 1;
    if (!norm.bias.empty()) {
      const Tensor shift = sum(weight * along(exact(norm.bias), dim, weight.rank()), {r.dim, dim}) * norm.factor;
      bias_what = bias.defined() ? "norm's bias folded in" : "created: the norm's bias";
      bias = bias.defined() ? bias + shift : shift;
    }
    if (norm.weight.empty()) return;
    say(what, "gain folded");
    weight = weight * along(exact(norm.weight), dim, weight.rank());
  }

  // A tied head reads the raw table and gets a weight of its own. With the mapped table B that is B (D^T D) in
  // crms_norm, and B itself in crms_isometric.
  void read(const Plan::Reader& r) {
    std::string what, bias_what;
    const bool has_bias = !r.tied() && state_.find(r.bias);
    Tensor weight = split(exact(r.tensor()), r.dim, r.parts), bias = has_bias ? exact(r.bias) : Tensor();
    // A table that is read bare is not a writer, so it is raw already.
    if (!r.tied() || from_.writer(r.table))
      weight = raw(weight, r.tied() ? Role::writer : Role::reader, r.dim + 1, what);
    if (r.tied()) what = text("created: untied from ", r.table);
    fold(weight, bias, r, what, bias_what);
    const NumberFormat format = piece_.format(r.tensor());
    const auto shape_of = [&](const std::string& name) { return std::optional(state_.at(name).shape()); };
    put(r.name, joined(mapped(weight, Role::reader, r.dim + 1, what), r.dim), format, what,
        r.tied() ? std::nullopt : shape_of(r.name));
    if (bias.defined())
      put(r.bias, bias, has_bias ? piece_.format(r.bias) : format, bias_what,
          has_bias ? shape_of(r.bias) : std::nullopt);
    result_.plan.readers.push_back(r);
    result_.plan.readers.back().table.clear();
  }

  const Piece& piece_;
  const TensorMap& state_;
  const Plan& from_;
  Form to_;
  std::optional<NumberFormat> format_;
  ZeroMeans& means_;
  std::set<std::string> scales_;  // folded into writers
  Conversion result_;
};

}  // namespace

void check_forms(const Plan& plan, Form to) {
  const Form from = plan.form;
  check_form(plan);
  if (plan.rotation.defined())
    return check(to == from, "convert: a rotation keeps the form ", name_of(from), ", it cannot change to ",
                 name_of(to));
  check(row_of(to).normed(), "convert: a stream with norms cannot be converted to a form without norms");
  check(row_of(to).layer_norm_model(), "convert: ", name_of(to), " is not a form of a LayerNorm model");
  check(to != from, "convert: the checkpoint has the form ", name_of(to), " already");
  for (const Plan::Norm& n : plan.norms)
    check(n.folds || (n.weight.empty() && n.bias.empty()) || !row_of(to).compressed(), "convert: norm '", n.name,
          "' is to keep its gain of ", plan.width, " entries, and ", name_of(to), " stores ", plan.width - 1,
          " coordinates; rms_norm has a place for it");
}

std::vector<std::string> order_of_result(const Plan& plan, const std::vector<Unit>& units) {
  std::vector<std::string> order, heads;
  for (const Plan::Norm& n : plan.norms)
    if (!n.folds) order.insert(order.end(), {n.weight, n.bias});
  for (const Unit& u : units) {
    if (!u.plan.writers.empty() || !u.plan.others.empty()) order.push_back(u.names.front());
    for (const Plan::Reader& r : u.plan.readers)
      (r.tied() ? heads : order).insert((r.tied() ? heads : order).end(), {r.name, r.bias});
  }
  order.insert(order.end(), heads.begin(), heads.end());
  std::erase(order, "");
  return order;
}

Conversion convert(const TensorMap& stored, const Plan& plan, Form to, std::optional<NumberFormat> format) {
  const Piece whole{with_gains(stored, plan), plan};
  check_forms(plan, to);
  check_plan(plan, whole.state);
  check_values(whole.state, plan);
  ZeroMeans means;
  Conversion result = convert_piece(whole, to, format, means);
  for (const auto& [name, mean] : means) mean.check_writer(name);
  TensorMap exact, state;
  std::map<std::string, size_t> place;
  for (const std::string& name : order_of_result(plan, units_of(whole.state, plan))) {
    if (!result.state.find(name)) continue;
    place.emplace(name, place.size());
    exact.add(name, result.exact.at(name)), state.add(name, result.state.at(name));
  }
  result.exact = std::move(exact), result.state = std::move(state);
  std::ranges::stable_sort(result.changes, {}, [&](const TensorChange& t) {
    const auto at = place.find(t.name);
    return at == place.end() || !t.after ? place.size() : at->second;
  });
  return result;
}

void check_values(const TensorMap& state, const Plan& plan) {
  const auto finite = [&](const std::string& name) {
    const Tensor* t = name.empty() ? nullptr : state.find(name);
    check(!t || training::is_finite(*t), "convert: '", name, "' holds NaN or infinity");
  };
  for (const Plan::Norm& n : plan.norms) finite(n.weight), finite(n.bias);
  for (const Plan::Writer& w : plan.writers) finite(w.name), finite(w.scale);
  for (const Plan::Reader& r : plan.readers) {
    finite(r.tensor());
    if (r.norm >= 0 && !plan.norms[r.norm].bias.empty()) finite(r.bias);
  }
}

void ZeroMean::add(const Tensor& writer, int dim, NumberFormat format) {
  off_ = larger(off_, largest_entry(mean(writer, {dim}))), size_ = larger(size_, largest_entry(writer));
  format_ = format;
}

void ZeroMean::check_writer(const std::string& name) const {
  const double bound = std::max(epsilon(format_) * size_, smallest_step(format_));
  check(off_ <= bound, "convert: writer '", name, "' has a mean of up to ", off_,
        " along the stream, rounding explains ", bound, ": RMSNorm sees that mean and LayerNorm does not");
}

Conversion convert_piece(const Piece& piece, Form to, std::optional<NumberFormat> format, ZeroMeans& means) {
  NoGrad no_grad;
  return PieceConverter(piece, to, format, means).run();
}

}  // namespace isonorm::equivalence
