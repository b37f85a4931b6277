#include "streams/stream.h"

#include "autograd/ops/pointwise.h"

namespace isonorm::streams {
namespace {

// Maps bf16 in f32 and rounds once: sums and differences in bf16 would have a larger error than the rounding of the
// result (docs/equivalence.md, the certificate).
template <class F> Tensor rounded_once(const Tensor& w, F&& map) {
  return w.dtype() == DType::bf16 ? map(w.to(DType::f32)).to(DType::bf16) : map(w);
}

}  // namespace

std::vector<std::string> names_of(std::span<const Form> forms) {
  std::vector<std::string> names;
  for (Form f : forms) names.emplace_back(name_of(f));
  return names;
}

std::string listed(std::span<const Form> forms, const char* last) {
  std::string names;
  for (size_t i = 0; i < forms.size(); ++i)
    names += text(i == 0 ? "" : i + 1 == forms.size() ? last : ", ", name_of(forms[i]));
  return names;
}

Form form_named(std::string_view name) {
  for (Form f : kForms)
    if (name == name_of(f)) return f;
  check(false, "stream: no form is called '", name, "'; there are ", listed(kForms));
  return {};
}

Form form_of(NormKind norm) {
  for (Form f : kForms)
    if (norm_of(f) == norm) return f;
  check(false, "stream: no form is of a plain model with norms ", name_of(norm));
  return {};
}

Stream::Stream(Form form, int64_t width, Stored storage, bool centre_readers)
    : options_{form, storage, centre_readers}, width_(width) {
  check(width >= 2, "stream: width ", width, " is too small, expected at least 2");
  check(!centre_readers || row_of(form).layer_norm_model(), "stream: the rows of ", name_of(form),
        " have a mean, which centred readers would not see");
}

int64_t Stream::stored_width() const { return row_of(form()).compressed ? width_ - 1 : width_; }
int64_t Stream::parameter_width() const { return storage() == Stored::raw ? width_ : stored_width(); }

Tensor Stream::write(const Tensor& w, int dim) const {
  check(w.size(dim) == parameter_width(), "stream: a writer of shape ", w.shape(), " has ", w.size(dim),
        " along dimension ", dim, ", the stream's parameters have ", parameter_width());
  return storage() == Stored::raw ? map_writer(w, dim) : w;
}

Tensor Stream::read(const Tensor& a) const {
  check(a.size(-1) == parameter_width(), "stream: a reader of shape ", a.shape(), " has width ", a.size(-1),
        ", the stream's parameters have ", parameter_width());
  return storage() == Stored::raw ? map_reader(a) : a;
}

Tensor Stream::read_table(const Tensor& table) const {
  if (storage() == Stored::raw) return read(table);
  if (form() != Form::crms_norm) return table;
  return rounded_once(table, [](const Tensor& b) { return compress_reader(expand_writer(b, -1), -1); });
}

Tensor Stream::map_writer(const Tensor& w, int dim) const {
  switch (form()) {
    case Form::rms_norm:
      return recentre(w, dim);  // rounds once by itself
    case Form::crms_norm:
      return rounded_once(w, [dim](const Tensor& x) { return compress_writer(x, dim); });
    case Form::crms_isometric:
      return rounded_once(w, [dim](const Tensor& x) { return to_isometric(x, dim); });
    default:
      return w;
  }
}

Tensor Stream::map_reader(const Tensor& a) const {
  if (form() != Form::crms_norm && form() != Form::crms_isometric && !centres_readers()) return a;
  return rounded_once(a, [this](const Tensor& x) {
    if (form() == Form::crms_norm) return compress_reader(x, -1);
    if (form() == Form::crms_isometric) return to_isometric(x, -1);
    return recentre(x, -1);  // A D and A Q equal those of A P already
  });
}

Tensor Stream::expand(const Tensor& rows) const {
  if (!row_of(form()).compressed) return rows;
  return rounded_once(rows, [this](const Tensor& x) {
    return form() == Form::crms_norm ? expand_writer(x, -1) : from_isometric(x, -1);
  });
}

}  // namespace isonorm::streams
