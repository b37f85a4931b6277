#include "streams/stream.h"

#include "autograd/ops/pointwise.h"

namespace isonorm::nn {
namespace {

// The coordinates' maps in f32 for bf16, rounded once: their sums and differences in bf16 would cost more than the
// rounding of the result (docs/equivalence.md, the certificate).
template <class F> Tensor rounded_once(const Tensor& w, F&& map) {
  return w.dtype() == DType::bf16 ? cast(map(cast(w, DType::f32)), DType::bf16) : map(w);
}

}  // namespace

std::vector<std::string> names_of(std::span<const StreamForm> forms) {
  std::vector<std::string> names;
  for (StreamForm f : forms) names.emplace_back(name_of(f));
  return names;
}

std::string listed(std::span<const StreamForm> forms, const char* last) {
  std::string names;
  for (size_t i = 0; i < forms.size(); ++i)
    names += text(i == 0 ? "" : i + 1 == forms.size() ? last : ", ", name_of(forms[i]));
  return names;
}

StreamForm stream_form(std::string_view name) {
  for (StreamForm f : kStreamForms)
    if (name == name_of(f)) return f;
  check(false, "stream: no form is called '", name, "'; there are ", listed(kStreamForms));
  return {};
}

Stream::Stream(StreamForm form, int64_t width, StreamStorage storage, bool centre_readers)
    : form_(form), width_(width), storage_(storage), centre_readers_(centre_readers) {
  check(width >= 2, "stream: width ", width, " is too small, expected at least 2");
  check(!centre_readers || form != StreamForm::uncentred_rms_norm, "stream: the rows of ", name_of(form),
        " have a mean, which centred readers would not see");
}

int64_t Stream::stored_width() const { return row_of(form_).compressed ? width_ - 1 : width_; }
int64_t Stream::parameter_width() const { return storage_ == StreamStorage::raw ? width_ : stored_width(); }

Tensor Stream::write(const Tensor& w, int dim) const {
  check(w.size(dim) == parameter_width(), "stream: a writer of shape ", w.shape(), " has ", w.size(dim),
        " along dimension ", dim, ", the stream's parameters have ", parameter_width());
  return storage_ == StreamStorage::raw ? map_writer(w, dim) : w;
}

Tensor Stream::read(const Tensor& a) const {
  check(a.size(-1) == parameter_width(), "stream: a reader of shape ", a.shape(), " has width ", a.size(-1),
        ", the stream's parameters have ", parameter_width());
  return storage_ == StreamStorage::raw ? map_reader(a) : a;
}

Tensor Stream::read_table(const Tensor& table) const {
  if (storage_ == StreamStorage::raw) return read(table);
  if (form_ != StreamForm::crms_norm) return table;
  return rounded_once(table, [](const Tensor& b) { return compress_reader(expand_writer(b, -1), -1); });
}

Tensor Stream::map_writer(const Tensor& w, int dim) const {
  switch (form_) {
    case StreamForm::rms_norm:
      return recentre(w, dim);  // rounds once by itself
    case StreamForm::crms_norm:
      return rounded_once(w, [dim](const Tensor& x) { return compress_writer(x, dim); });
    case StreamForm::crms_isometric:
      return rounded_once(w, [dim](const Tensor& x) { return to_isometric(x, dim); });
    default:
      return w;
  }
}

Tensor Stream::map_reader(const Tensor& a) const {
  if (form_ != StreamForm::crms_norm && form_ != StreamForm::crms_isometric && !centre_readers_) return a;
  return rounded_once(a, [this](const Tensor& x) {
    if (form_ == StreamForm::crms_norm) return compress_reader(x, -1);
    if (form_ == StreamForm::crms_isometric) return to_isometric(x, -1);
    return recentre(x, -1);  // A D and A Q are those of A P already
  });
}

Tensor Stream::expand(const Tensor& rows) const {
  if (!row_of(form_).compressed) return rows;
  return rounded_once(rows, [this](const Tensor& x) {
    return form_ == StreamForm::crms_norm ? expand_writer(x, -1) : from_isometric(x, -1);
  });
}

}  // namespace isonorm::nn
