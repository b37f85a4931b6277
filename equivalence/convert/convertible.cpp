#include "equivalence/convert/convertible.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "core/system/foreign_text.h"
#include "equivalence/convert/pieces.h"
#include "equivalence/convert/checkpoint_facts.h"
#include "equivalence/judge/pairs.h"
#include "streams/stream.h"
#include "training/steps/loop.h"

namespace isonorm::equivalence {
namespace {

using streams::Role;

// Every name that the plan knows, each once.
std::set<std::string> known_names(const streams::Plan& plan) {
  std::set<std::string> names, scales;
  const auto add = [&](const std::string& name) {
    check(names.insert(name).second, "convert: '", name, "' is two things at once to the stream");
  };
  for (const streams::Place& p : plan.places) {
    add(p.name);
    if (!p.scale.empty() && scales.insert(p.scale).second) add(p.scale);  // weight and bias of a writer share one
  }
  for (const streams::NormPlace& n : plan.norms)
    for (const std::string* name : {&n.weight, &n.bias})
      if (!name->empty()) add(*name);
  return names;
}

const Tensor& tensor_at(const TensorMap& state, const std::string& name) {
  const Tensor* t = state.find(name);
  check(t != nullptr, "convert: tensor '", name, "' is missing");
  return *t;
}

void check_mappable(bool ok, const std::string& name, std::string_view dtype) {
  check(ok, "convert: '", name, "' has dtype ", dtype,
        ": integer and quantised weights cannot be mapped exactly, expected f32, f64 or bf16");
}

void check_numbers(const TensorMap& state, const std::string& name) {
  const DType dtype = tensor_at(state, name).dtype();
  check_mappable(is_floating(dtype), name, name_of(dtype));
}

void check_finite(const std::string& name, const Tensor& t) {
  check(training::is_finite(t), "convert: '", name, "' holds NaN or infinity");
}

void check_vector(const TensorMap& state, const std::string& name, const streams::Plan& plan, const char* what) {
  check(plan.stored_width() == plan.width, "convert: '", name, "': a ", what, " of ", plan.width,
        " entries cannot stand on the ", plan.stored_width(), " coordinates that ", name_of(plan.form),
        " stores; such a model is no LayerNorm model");
  check_numbers(state, name);
  const Tensor& t = tensor_at(state, name);
  check(t.shape() == Dims{plan.width}, "convert: '", name, "' has shape ", t.shape(), ", a ", what, " of this stream [",
        plan.width, "]");
}

const streams::NormPlace& check_read(const streams::Plan& plan, const std::string& reader, const std::string& norm) {
  check(!norm.empty(), "convert: '", reader, "' reads the stream without a norm, which sees its mean");
  const streams::NormPlace* n = plan.find_norm(norm);
  check(n != nullptr, "convert: '", reader, "' reads through norm '", norm, "', which is not there");
  check(n->normalizes, "convert: '", reader, "' reads the stream without a norm ('", norm,
        "' does not normalize), which sees its mean");
  return *n;
}

// A tensor that is neutral only because nobody mentioned it may be an undeclared writer, which would silently spoil
// every conversion.
void check_neutral(const TensorMap& state, const streams::Plan& plan) {
  ShortList undeclared;
  for (const streams::Place& p : plan.places) {
    if (p.role != Role::neutral || p.said) continue;
    const Dims& shape = tensor_at(state, p.name).shape();
    if (std::none_of(shape.begin(), shape.end(),
                     [&](int64_t n) { return n == plan.width || n == plan.stored_width(); }))
      continue;
    undeclared.add("'", p.name, "' of shape ", shape);
  }
  const bool one = undeclared.size() == 1;
  check(
      undeclared.empty(), "convert: ", undeclared, one ? " has" : " have", " an axis of the stream's width ",
      plan.stored_width(),
      one ? " and is neither writer nor reader; where it does" : " and are neither writers nor readers; where they do",
      " not touch the stream, \"not_on_stream\" must say so");
}

// A layer scale multiplies the output, so it applies to the writer's bias, too.
void check_scale(const streams::Plan& plan, const streams::Place& p) {
  if (p.scale.empty()) return;
  const std::string bias = streams::bias_beside(p.name);
  for (const streams::Place& b : plan.places)
    check(b.name != bias || b.role != Role::writer || b.scale == p.scale, "convert: writer '", p.name,
          "' has the layer scale '", p.scale, "', its bias '", bias, "' ",
          b.scale.empty() ? "none" : "'" + b.scale + "'", ": \"scales\" must name both");
}

// Conversion puts a table's rows through their norm. That is possible only for tables.
void check_behind(const TensorMap& state, const streams::Plan& plan, const streams::Place& p) {
  const streams::NormPlace* norm = plan.find_norm(p.norm);
  check(norm != nullptr, "convert: the rows of '", p.name, "' go through norm '", p.norm, "', which is not there");
  check(row_of(plan.form).norm == NormKind::layer && norm->normalizes, "convert: the rows of '", p.name,
        "' go through norm '", p.norm, "', which is no LayerNorm in the form ", name_of(plan.form));
  check(tensor_at(state, p.name).rank() == 2 && p.dim == 1 && p.scale.empty(), "convert: '", p.name, "' of shape ",
        tensor_at(state, p.name).shape(), " is no table [rows, width], whose rows could go through norm '", p.norm,
        "'");
  check(norm->folds, "convert: norm '", p.norm, "' is to keep its gain, and the rows of '", p.name, "' go through it");
  const auto reads = [&](const auto& reader) { return reader.norm == p.norm; };
  check(std::ranges::none_of(plan.tied, reads) &&
            std::ranges::none_of(plan.places, [&](const auto& q) { return q.role == Role::reader && reads(q); }),
        "convert: norm '", p.norm, "' stands behind the table '", p.name, "', and a reader reads through it, too");
}

void check_place(const TensorMap& state, const streams::Plan& plan, const streams::Place& p) {
  check(p.role == Role::writer || p.scale.empty(), "convert: '", p.name, "' has the layer scale '", p.scale,
        "' and is no writer");
  if (p.role == Role::neutral) return void(tensor_at(state, p.name));
  check_numbers(state, p.name);
  const Tensor& t = tensor_at(state, p.name);
  const char* role = p.role == Role::writer ? "writer" : "reader";
  check(p.dim >= 0 && p.dim < t.rank() && t.size(p.dim) == p.parts * plan.stored_width(), "convert: ", role, " '",
        p.name, "' of shape ", t.shape(), " does not have ", p.parts > 1 ? text(p.parts, " x ") : "",
        plan.stored_width(), " entries along dimension ", p.dim, ", as the stream of ", name_of(plan.form), " has");
  check(p.parts == 1 || p.dim + 1 == t.rank(), "convert: reader '", p.name, "' of shape ", t.shape(), " reads ",
        p.parts, " rows side by side, expected along its last dimension");
  if (p.role == Role::writer) {
    check(t.rank() > 1 || !p.name.ends_with(".weight"), "convert: writer '", p.name, "' of shape ", t.shape(),
          " is a vector, as a norm's gain is, which multiplies and is not added to the stream");
    if (!p.norm.empty()) check_behind(state, plan, p);
    if (!p.scale.empty()) check_vector(state, p.scale, plan, "layer scale");
    return check_scale(plan, p);
  }
  const streams::NormPlace& norm = check_read(plan, p.name, p.norm);
  const Tensor* bias = state.find(p.bias);
  if (!bias) return;
  Dims expected = t.shape();
  for (int i = p.dim; i + 1 < expected.rank; ++i) expected[i] = expected[i + 1];
  --expected.rank;
  check(bias->shape() == expected, "convert: '", p.bias, "' has shape ", bias->shape(), ", the bias of '", p.name,
        "' of shape ", t.shape(), " has ", expected);
  if (!norm.bias.empty()) check_numbers(state, p.bias);
}

}  // namespace

void check_form(const streams::Plan& plan) {
  if (plan.rotation.defined()) return check_rotatable(plan);
  check(row_of(plan.form).layer_norm_model() || !row_of(plan.form).normed(), "convert: ", name_of(plan.form),
        ": norms of rows that keep their mean are no LayerNorm in any coordinates");
}

void check_rotatable(const streams::Plan& plan) {
  const NormKind kind = row_of(plan.form).norm;
  check(kind != NormKind::layer,
        "rotate: LayerNorm takes off a mean, which is that of these coordinates alone; "
        "isonorm convert --to rms_norm comes first");
  check(row_of(plan.form).rotates(), "rotate: the norms of ", name_of(plan.form),
        " do not divide a stored row by its length; isonorm convert --to rms_norm, or crms_isometric, comes first");
  check(plan.recentred.empty(), "rotate: rows enter the stream at '", plan.recentred,
        "', which no weight makes: the program that runs the result would have to rotate them");
  for (const streams::NormPlace& n : plan.norms)
    check(n.weight.empty() && n.bias.empty() && !n.keeps_gain, "rotate: norm '", n.name,
          "' has a gain or a bias, which acts on single coordinates; its readers have to take it up first "
          "(isonorm convert --fold all)");
}

void check_plan(const TensorMap& state, const streams::Plan& plan) {
  check(row_of(plan.form).normed(), "convert: a stream without norms has no other form");
  check(plan.width >= 2, "convert: a stream of width ", plan.width, " cannot be converted, expected at least 2");
  check(!plan.norms.empty(), "convert: there is no norm");
  const std::set<std::string> names = known_names(plan);
  for (const auto& [name, tensor] : state)
    check(names.contains(name), "convert: tensor '", name, "' of shape ", tensor.shape(),
          " is unexpected: what it is to the stream is not known");
  std::set<std::string> norm_names, read, biases;
  for (const streams::NormPlace& n : plan.norms) {
    check(norm_names.insert(n.name).second, "convert: norm '", n.name, "' is there twice");
    check(std::isfinite(n.eps) && n.eps > 0, "convert: norm '", n.name, "' has eps ", n.eps, ", expected one above 0");
    if (!n.weight.empty()) check_vector(state, n.weight, plan, "gain");
    if (!n.bias.empty()) check_vector(state, n.bias, plan, "norm's bias");
  }
  check_neutral(state, plan);
  for (const streams::Place& p : plan.places) {
    check_place(state, plan, p);
    if (p.role != Role::neutral) read.insert(p.norm);
    if (p.role != Role::reader) continue;
    check(biases.insert(p.bias).second, "convert: '", p.bias, "' is the bias of two readers");
  }
  for (const streams::Layout::Tied& t : plan.tied) {
    const auto table = std::ranges::find(plan.places, t.table, &streams::Place::name);
    const bool known = table != plan.places.end() && table->role != Role::reader;
    check(known, "convert: the tied table '", t.table, "' is not a writer");
    check(table->role == Role::writer || row_of(plan.form).raw(), "convert: the tied table '", t.table,
          "' is read bare, and the head reads what ", name_of(plan.form), " makes of it, which it does not hold");
    check(tensor_at(state, t.table).rank() == 2, "convert: the tied table '", t.table, "' has shape ",
          tensor_at(state, t.table).shape(), ", expected [rows, width]");
    check_read(plan, t.table, t.norm);
    read.insert(t.norm);
    for (const std::string* made : {&t.weight, &t.bias})
      check(!names.contains(*made), "convert: the name '", *made, "' of the head of the tied table '", t.table,
            "' is taken");
  }
  for (const streams::NormPlace& n : plan.norms)
    check(read.contains(n.name) || (n.weight.empty() && n.bias.empty()) || !n.folds,
          "convert: no reader takes up the gain of '", n.name, "'");
}

LazyState with_gains(LazyState stored, const streams::Plan& plan) {
  std::set<std::string> gains;
  for (const streams::NormPlace& n : plan.norms)
    if (n.plus_one && !n.weight.empty()) gains.insert(n.weight);
  if (gains.empty()) return stored;
  LazyState state;
  for (const auto& [name, tensor] : stored.outline) {
    const bool adds = gains.contains(name) && is_floating(tensor.dtype());
    state.outline.add(name, adds ? outline(tensor.shape(), DType::f64) : tensor);
    if (!adds && stored.half.contains(name)) state.half.insert(name);
  }
  state.read = [read = std::move(stored.read), gains = std::move(gains)](const std::string& name) {
    const Tensor t = read(name);
    return gains.contains(name) && is_floating(t.dtype()) ? t.to(DType::f64) + 1.0 : t;
  };
  return state;
}

TensorMap with_gains(const TensorMap& stored, const streams::Plan& plan) {
  const LazyState state = with_gains(LazyState(stored), plan);
  TensorMap held;
  for (const auto& [name, _] : state.outline) held.add(name, state.read(name));
  return held;
}

void check_dtypes(const streams::Plan& plan, const std::map<std::string, std::string>& foreign) {
  const auto look = [&](const std::string& name) {
    if (const auto at = foreign.find(name); at != foreign.end()) check_mappable(false, name, at->second);
  };
  for (const streams::NormPlace& n : plan.norms) look(n.weight), look(n.bias);
  for (const streams::Place& p : plan.places) {
    look(p.scale);
    if (p.role != Role::neutral) look(p.name);
    if (const streams::NormPlace* norm = plan.find_norm(p.norm); norm && !norm->bias.empty()) look(p.bias);
  }
}

void check_values(const TensorMap& state, const streams::Plan& plan) {
  const auto finite = [&](const std::string& name) {
    if (const Tensor* t = name.empty() ? nullptr : state.find(name)) check_finite(name, *t);
  };
  for (const streams::NormPlace& n : plan.norms) finite(n.weight), finite(n.bias);
  for (const streams::Place& p : plan.places) {
    if (p.role == Role::neutral) continue;
    finite(p.name), finite(p.scale);
    if (const streams::NormPlace* norm = plan.find_norm(p.norm); norm && !norm->bias.empty()) finite(p.bias);
  }
}

void check_convertible(const TensorMap& state, const streams::Plan& plan) {
  check_form(plan);
  check_plan(state, plan);
  check_values(state, plan);
}

NumberFormat coarsest(const TensorMap& state, const std::set<std::string>& half) {
  NumberFormat found = DType::f64;
  for (const auto& [name, tensor] : state)
    if (is_floating(tensor.dtype())) found = coarser(found, {tensor.dtype(), half.contains(name)});
  return found;
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

}  // namespace isonorm::equivalence
