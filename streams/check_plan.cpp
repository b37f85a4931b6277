// Checks of a plan: the conditions under which the tensors of a checkpoint can be converted exactly, as far as
// names, dtypes and shapes show.
#include "streams/plan.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "core/system/foreign_text.h"

namespace isonorm::streams {
namespace {

void check_mappable(bool mappable, const std::string& name, std::string_view dtype) {
  check(mappable, "convert: '", name, "' has dtype ", dtype,
        ": integer and quantised weights cannot be mapped exactly, expected f32, f64 or bf16");
}

class Checker {
 public:
  Checker(const Plan& plan, const TensorMap& outline) : plan_(plan), outline_(outline) {}

  void run() {
    check(row_of(plan_.form).normed(), "convert: a stream without norms has no other form");
    check(plan_.width >= 2, "convert: a stream of width ", plan_.width, " cannot be converted, expected at least 2");
    check(!plan_.norms.empty(), "convert: there is no norm");
    check_names();
    for (const Plan::Norm& n : plan_.norms) check_norm(n);
    check_others();
    for (const Plan::Writer& w : plan_.writers) check_writer(w);
    for (const Plan::Reader& r : plan_.readers) r.tied() ? check_head(r) : check_reader(r);
    for (const Plan::Norm& n : plan_.norms)
      check(plan_.is_read(n) || plan_.is_behind_table(n) || (n.weight.empty() && n.bias.empty()) || !n.folds,
            "convert: no reader can fold in the gain of '", n.name, "'");
  }

 private:
  const Tensor& tensor_at(const std::string& name) const {
    const Tensor* t = outline_.find(name);
    check(t != nullptr, "convert: tensor '", name, "' is missing");
    return *t;
  }

  void check_numbers(const std::string& name) const {
    const DType dtype = tensor_at(name).dtype();
    check_mappable(is_floating(dtype), name, name_of(dtype));
  }

  // Throws if a tensor has two roles on the stream, or none.
  void check_names() {
    std::set<std::string> scales, biases;
    const auto add = [&](const std::string& name) {
      check(name.empty() || names_.insert(name).second, "convert: '", name, "' has two roles on the stream");
    };
    for (const Plan::Writer& w : plan_.writers) {
      add(w.name);
      if (scales.insert(w.scale).second) add(w.scale);  // weight and bias of a writer share one
    }
    for (const Plan::Reader& r : plan_.readers)
      if (!r.tied()) add(r.name);
    for (const Plan::Other& o : plan_.others) add(o.name);
    for (const Plan::Norm& n : plan_.norms) add(n.weight), add(n.bias);
    for (const Plan::Reader& r : plan_.readers) {
      check(biases.insert(r.bias).second, "convert: '", r.bias, "' is the bias of two readers");
      if (!r.tied() && outline_.find(r.bias)) add(r.bias);
    }
    for (const auto& [name, tensor] : outline_)
      check(names_.contains(name), "convert: tensor '", name, "' of shape ", tensor.shape(),
            " is unexpected: its role on the stream is unknown");
  }

  void check_norm(const Plan::Norm& n) const {
    check(std::ranges::count(plan_.norms, n.name, &Plan::Norm::name) == 1, "convert: norm '", n.name,
          "' is there twice");
    check(std::isfinite(n.eps) && n.eps > 0, "convert: norm '", n.name, "' has eps ", n.eps,
          ", expected a number above 0");
    if (!n.weight.empty()) check_vector(n.weight, "gain");
    if (!n.bias.empty()) check_vector(n.bias, "norm's bias");
  }

  void check_vector(const std::string& name, const char* what) const {
    check(plan_.stored_width() == plan_.width, "convert: '", name, "': a ", what, " of ", plan_.width,
          " entries cannot act on the ", plan_.stored_width(), " coordinates that ", name_of(plan_.form),
          " stores; such a model is not a LayerNorm model");
    check_numbers(name);
    const Tensor& t = tensor_at(name);
    check(t.shape() == Dims{plan_.width}, "convert: '", name, "' has shape ", t.shape(), ", a ", what,
          " of this stream [", plan_.width, "]");
  }

  // A tensor that the layout does not name may be a forgotten writer, which would silently spoil every conversion.
  void check_others() const {
    ShortList undeclared;
    for (const Plan::Other& o : plan_.others) {
      const Dims& shape = tensor_at(o.name).shape();
      if (!o.off_stream &&
          std::ranges::any_of(shape, [&](int64_t n) { return n == plan_.width || n == plan_.stored_width(); }))
        undeclared.add("'", o.name, "' of shape ", shape);
    }
    const bool one = undeclared.size() == 1;
    check(undeclared.empty(), "convert: ", undeclared, one ? " has" : " have", " an axis of the stream's width ",
          plan_.stored_width(),
          one ? " but is neither writer nor reader; if it does" : " but are neither writers nor readers; if they do",
          " not touch the stream, list ", one ? "it" : "them", " in \"not_on_stream\"");
  }

  void check_axis(const char* role, const std::string& name, int dim, int64_t parts) const {
    check_numbers(name);
    const Tensor& t = tensor_at(name);
    check(dim >= 0 && dim < t.rank() && t.size(dim) == parts * plan_.stored_width(), "convert: ", role, " '", name,
          "' of shape ", t.shape(), " does not have ", parts > 1 ? text(parts, " x ") : "", plan_.stored_width(),
          " entries along dimension ", dim, ", as the stream of ", name_of(plan_.form), " has");
  }

  void check_writer(const Plan::Writer& w) const {
    check_axis("writer", w.name, w.dim, 1);
    const Tensor& t = tensor_at(w.name);
    check(t.rank() > 1 || !w.name.ends_with(".weight"), "convert: writer '", w.name, "' of shape ", t.shape(),
          " is a vector, as a norm's gain is, which multiplies and is not added to the stream");
    if (w.norm >= 0) check_table(w);
    if (w.scale.empty()) return;
    check_vector(w.scale, "layer scale");
    // A layer scale multiplies the output, so it applies to the writer's bias, too.
    const std::string bias = bias_beside(w.name);
    for (const Plan::Writer& b : plan_.writers)
      check(b.name != bias || b.scale == w.scale, "convert: writer '", w.name, "' has the layer scale '", w.scale,
            "', its bias '", bias, "' ", b.scale.empty() ? "none" : "'" + b.scale + "'", ": \"scales\" must name both");
  }

  // Throws if a writer with a norm is not a table, or if conversion cannot apply the norm to its rows.
  void check_table(const Plan::Writer& w) const {
    const Plan::Norm& norm = plan_.norms[w.norm];
    const Tensor& t = tensor_at(w.name);
    check(row_of(plan_.form).norm == NormKind::layer && norm.normalizes, "convert: the rows of '", w.name,
          "' go through norm '", norm.name, "', which is no LayerNorm in the form ", name_of(plan_.form));
    check(t.rank() == 2 && w.dim == 1 && w.scale.empty(), "convert: the layout sends the rows of '", w.name,
          "' through norm '", norm.name, "', but only an unscaled table [rows, width] can go through one; '", w.name,
          "' has shape ", t.shape());
    check(norm.folds, "convert: norm '", norm.name, "' cannot keep its gain, because the rows of '", w.name,
          "' go through the norm");
    check(!plan_.is_read(norm), "convert: norm '", norm.name, "' normalizes the rows of the table '", w.name,
          "', so no reader may read through it");
  }

  const Plan::Norm& check_norm_of(const Plan::Reader& r) const {
    check(r.norm >= 0, "convert: '", r.tensor(),
          "' reads the stream without a norm, so it would see the stream's mean");
    const Plan::Norm& norm = plan_.norms[r.norm];
    check(norm.normalizes, "convert: '", r.tensor(), "' would see the stream's mean, because its norm '", norm.name,
          "' does not normalize");
    return norm;
  }

  void check_reader(const Plan::Reader& r) const {
    check_axis("reader", r.name, r.dim, r.parts);
    const Tensor& t = tensor_at(r.name);
    check(r.parts == 1 || r.dim + 1 == t.rank(), "convert: reader '", r.name, "' of shape ", t.shape(), " reads ",
          r.parts, " rows side by side, expected along its last dimension");
    const Plan::Norm& norm = check_norm_of(r);
    const Tensor* bias = outline_.find(r.bias);
    if (!bias) return;
    Dims expected = t.shape();
    for (int i = r.dim; i + 1 < expected.rank; ++i) expected[i] = expected[i + 1];
    --expected.rank;
    check(bias->shape() == expected, "convert: '", r.bias, "' has shape ", bias->shape(), ", the bias of '", r.name,
          "' of shape ", t.shape(), " has ", expected);
    if (!norm.bias.empty()) check_numbers(r.bias);
  }

  void check_head(const Plan::Reader& r) const {
    const bool writes = plan_.writer(r.table) != nullptr;
    check(writes || std::ranges::find(plan_.others, r.table, &Plan::Other::name) != plan_.others.end(),
          "convert: the tied table '", r.table, "' is not a writer");
    check(writes || row_of(plan_.form).raw(), "convert: the tied table '", r.table,
          "' does not write to the stream, so the file does not hold the table that the head needs in the form ",
          name_of(plan_.form));
    const Tensor& t = tensor_at(r.table);
    check(t.rank() == 2, "convert: the tied table '", r.table, "' has shape ", t.shape(), ", expected [rows, width]");
    check_norm_of(r);
    for (const std::string* made : {&r.name, &r.bias})
      check(!names_.contains(*made), "convert: the name '", *made, "' of the head of the tied table '", r.table,
            "' is taken");
  }

  const Plan& plan_;
  const TensorMap& outline_;
  std::set<std::string> names_;
};

}  // namespace

void check_plan(const Plan& plan, const TensorMap& outline) { Checker(plan, outline).run(); }

void check_form(const Plan& plan) {
  if (plan.rotation.defined()) return check_rotatable(plan);
  check(row_of(plan.form).layer_norm_model() || !row_of(plan.form).normed(), "convert: ", name_of(plan.form),
        ": norms of rows that keep their mean are no LayerNorm in any coordinates");
}

void check_rotatable(const Plan& plan) {
  const NormKind kind = row_of(plan.form).norm;
  check(kind != NormKind::layer,
        "rotate: LayerNorm subtracts the mean over these coordinates, and a rotation would change that mean; first run "
        "isonorm convert --to rms_norm");
  check(row_of(plan.form).rotates(), "rotate: the norms of ", name_of(plan.form),
        " do not divide a stored row by its length; first run isonorm convert --to rms_norm or --to crms_isometric");
  check(plan.recentred.empty(), "rotate: rows enter the stream at '", plan.recentred,
        "', and no weight produces them: the program that runs the result would have to rotate them");
  for (const Plan::Norm& n : plan.norms)
    check(n.weight.empty() && n.bias.empty() && !n.keeps_gain, "rotate: norm '", n.name,
          "' has a gain or a bias, which acts on single coordinates; first fold it into the readers "
          "(isonorm convert --fold all)");
}

void check_dtypes(const Plan& plan, const std::map<std::string, std::string>& foreign) {
  const auto look = [&](const std::string& name) {
    if (const auto at = foreign.find(name); at != foreign.end()) check_mappable(false, name, at->second);
  };
  for (const Plan::Norm& n : plan.norms) look(n.weight), look(n.bias);
  for (const Plan::Writer& w : plan.writers) look(w.name), look(w.scale);
  for (const Plan::Reader& r : plan.readers) {
    look(r.tensor());
    if (r.norm >= 0 && !plan.norms[r.norm].bias.empty()) look(r.bias);
  }
}

}  // namespace isonorm::streams
