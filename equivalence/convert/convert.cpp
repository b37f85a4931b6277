#include "equivalence/convert/convert.h"

#include <cmath>
#include <set>

#include "autograd/grad_mode.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "equivalence/convert/checkpoint_facts.h"
#include "equivalence/convert/convertible.h"
#include "equivalence/convert/sum_rounding.h"
#include "equivalence/judge/pairs.h"
#include "streams/map.h"
#include "streams/rotation.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

using streams::Map;

namespace {

using streams::Form;
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

class Converter {
 public:
  Converter(const Piece& piece, Form to, std::optional<NumberFormat> format, ZeroMeans& means)
      : piece_(piece), state_(piece.state), from_(piece.plan), to_(to), format_(format), means_(means) {
    result_.plan.form = to;
    result_.plan.width = from_.width, result_.plan.recentred = from_.recentred;
  }

  Conversion run() {
    for (streams::NormPlace n : from_.norms) {
      if (n.folds) n.weight.clear(), n.bias.clear();
      result_.plan.norms.push_back(n);
      result_.plan.norms.back().plus_one = false;
      for (const std::string* kept : {&n.weight, &n.bias})
        if (!kept->empty()) keep_at(n, *kept);
    }
    for (const streams::Place& p : from_.places)
      if (p.role == Role::writer)
        write(p);
      else if (p.role == Role::reader)
        read(p);
      else if (!reader_of(p.name))
        keep(p);
    for (const streams::Layout::Tied& t : from_.tied) untie(t);
    for (const std::string& scale : scales_) drop(scale, "folded into its writer");
    for (const streams::NormPlace& n : from_.norms) {
      if (!n.folds) continue;
      for (const std::string* name : {&n.weight, &n.bias})
        drop(*name, from_.behind_table(n.name) ? "the table's rows went through its norm" : "folded into its readers");
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

  void put(streams::Place place, const Tensor& value, NumberFormat format, const std::string& what,
           std::optional<Dims> before) {
    const NumberFormat stored = format_.value_or(format);
    const bool sums = place.role == Role::writer && row_of(to_).rounds_with_sum;
    result_.exact.add(place.name, value);
    result_.state.add(
        place.name, sums ? rounded_with_sum(value, place.dim, stored, place.name) : rounded(value, stored, place.name));
    if (stored.half) result_.half.insert(place.name);
    result_.changes.push_back({place.name, what.empty() ? "unchanged" : what, before, value.shape()});
    result_.plan.places.push_back(std::move(place));
  }

  void drop(const std::string& name, const char* why) {
    if (!name.empty()) result_.changes.push_back({name, text("dropped: ", why), state_.at(name).shape(), {}});
  }

  // Keeps a norm's gain or bias at the norm. If a gain is stored as 1+w, w is rounded.
  void keep_at(const streams::NormPlace& n, const std::string& name) {
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
  void keep(const streams::Place& p) {
    const Tensor& t = state_.at(p.name);
    const bool floating = is_floating(t.dtype());
    const NumberFormat own = piece_.format(p.name), stored = floating ? format_.value_or(own) : own;
    result_.exact.add(p.name, floating ? exact(p.name) : t);
    result_.state.add(p.name, stored == own ? t : rounded(t, stored, p.name));
    if (stored.half) result_.half.insert(p.name);
    result_.changes.push_back({p.name, "unchanged", t.shape(), t.shape()});
    result_.plan.places.push_back(p);
  }

  void write(streams::Place p) {
    std::string what;
    Tensor x = raw(exact(p.name), p.role, p.dim, what);
    if (!p.norm.empty()) {
      say(what, "rows put through their norm");
      x = behind_norm(state_, from_, p, x), p.norm.clear();
    }
    if (!p.scale.empty()) {
      say(what, "layer scale folded");
      x = x * along(exact(p.scale), p.dim, x.rank());
    }
    const NumberFormat format = piece_.format(p.name);
    if (row_of(from_.form).zero_mean_writers()) means_[p.name].add(x, p.dim, format);
    if (!p.scale.empty()) scales_.insert(std::exchange(p.scale, ""));
    put(p, mapped(x, Role::writer, p.dim, what), format, what, state_.at(p.name).shape());
  }

  // f A (gain n + offset) + b = f (A diag(gain)) n + (b + f A offset), f the norm's factor. The bias is computed from
  // the original weight. weight: from split().
  void fold(Tensor& weight, Tensor& bias, const streams::Place& p, std::string& what, std::string& bias_what) const {
    const streams::NormPlace& norm = *from_.find_norm(p.norm);
    if (!norm.folds) return;
    if (!norm.bias.empty()) {
      const Tensor offset = along(exact(norm.bias), p.dim + 1, weight.rank());
      const Tensor shift = sum(weight * offset, {p.dim, p.dim + 1}) * norm.factor;
      bias_what = bias.defined() ? "norm's bias folded in" : "created: the norm's bias";
      bias = bias.defined() ? bias + shift : shift;
    }
    if (norm.weight.empty()) return;
    say(what, "gain folded");
    weight = weight * along(exact(norm.weight), p.dim + 1, weight.rank());
  }

  void read(const streams::Place& p) {
    std::string what, bias_what;
    const Tensor* old = state_.find(p.bias);
    Tensor weight = raw(split(exact(p.name), p.dim, p.parts), p.role, p.dim + 1, what);
    Tensor bias = old ? exact(p.bias) : Tensor();
    fold(weight, bias, p, what, bias_what);
    const NumberFormat format = piece_.format(p.name);
    put(p, joined(mapped(weight, Role::reader, p.dim + 1, what), p.dim), format, what, state_.at(p.name).shape());
    if (bias.defined())
      put(place_of_bias(p.bias), bias, old ? piece_.format(p.bias) : format, bias_what,
          old ? std::optional(old->shape()) : std::nullopt);
  }

  // The head reads the raw table. With the mapped table B that is B (D^T D) in crms_norm, and B itself in
  // crms_isometric.
  void untie(const streams::Layout::Tied& t) {
    streams::Place table{.name = t.table, .role = Role::writer, .dim = 1};
    for (const streams::Place& p : from_.places)
      if (p.name == t.table) table = p;
    std::string what, bias_what;
    streams::Place head{.name = t.weight, .role = Role::reader, .dim = table.dim, .norm = t.norm, .bias = t.bias};
    // A table that is read bare is not a writer, so it is raw already.
    Tensor weight = exact(t.table), bias;
    if (table.role == Role::writer) weight = raw(weight, table.role, table.dim, what);
    weight = split(weight, head.dim, 1);
    what = text("created: untied from ", t.table);
    fold(weight, bias, head, what, bias_what);
    const NumberFormat format = piece_.format(t.table);
    put(head, joined(mapped(weight, Role::reader, head.dim + 1, what), head.dim), format, what, {});
    if (bias.defined()) put({.name = t.bias}, bias, format, bias_what, {});
  }

  streams::Place place_of_bias(const std::string& name) const {
    for (const streams::Place& p : from_.places)
      if (p.name == name) return p;
    return {.name = name};
  }

  bool reader_of(const std::string& bias) const {
    for (const streams::Place& p : from_.places)
      if (p.role == Role::reader && p.bias == bias) return true;
    return false;
  }

  const Piece& piece_;
  const TensorMap& state_;
  const streams::Plan& from_;
  Form to_;
  std::optional<NumberFormat> format_;
  ZeroMeans& means_;
  std::set<std::string> scales_;  // folded into writers
  Conversion result_;
};

}  // namespace

void check_forms(const streams::Plan& plan, Form to) {
  const Form from = plan.form;
  check_form(plan);
  if (plan.rotation.defined())
    return check(to == from, "convert: ", name_of(from), " is rotated as it is, and not on its way to ", name_of(to));
  check(row_of(to).normed(), "convert: a stream with norms has no form without");
  check(row_of(to).layer_norm_model(), "convert: ", name_of(to), " is no form of a LayerNorm model");
  check(to != from, "convert: the checkpoint has the form ", name_of(to), " already");
  for (const streams::NormPlace& n : plan.norms)
    check(n.folds || (n.weight.empty() && n.bias.empty()) || !row_of(to).compressed(), "convert: norm '", n.name,
          "' is to keep its gain of ", plan.width, " entries, and ", name_of(to), " stores ", plan.width - 1,
          " coordinates; rms_norm has a place for it");
}

Conversion convert(const TensorMap& stored, const streams::Plan& plan, Form to, std::optional<NumberFormat> format) {
  const Piece whole{with_gains(stored, plan), plan};
  check_forms(plan, to);
  check_convertible(whole.state, plan);
  ZeroMeans means;
  Conversion result = convert_piece(whole, to, format, means);
  for (const auto& [name, mean] : means) mean.check_writer(name);
  return result;
}

Conversion convert_piece(const Piece& piece, Form to, std::optional<NumberFormat> format, ZeroMeans& means) {
  NoGrad no_grad;
  return Converter(piece, to, format, means).run();
}

}  // namespace isonorm::equivalence
