#include "nn/stream.h"

#include "autograd/ops/pointwise.h"

namespace isonorm::nn {
namespace {

constexpr StreamForm kForms[] = {StreamForm::layer_norm, StreamForm::rms_norm, StreamForm::crms_norm,
                                 StreamForm::crms_isometric, StreamForm::none};

// The coordinates' maps in f32 for bf16, rounded once: their sums and differences in bf16 would cost more than the
// rounding of the result (docs/equivalence.md, the certificate).
template <class F> Tensor rounded_once(const Tensor& w, F&& map) {
  return w.dtype() == DType::bf16 ? cast(map(cast(w, DType::f32)), DType::bf16) : map(w);
}

bool compressed(StreamForm f) { return f == StreamForm::crms_norm || f == StreamForm::crms_isometric; }

}  // namespace

const char* name_of(StreamForm form) {
  switch (form) {
    case StreamForm::layer_norm:
      return "layer_norm";
    case StreamForm::rms_norm:
      return "rms_norm";
    case StreamForm::crms_norm:
      return "crms_norm";
    case StreamForm::crms_isometric:
      return "crms_isometric";
    case StreamForm::none:
      return "none";
  }
  return "?";
}

StreamForm stream_form(std::string_view name) {
  std::string names;
  for (StreamForm f : kForms) {
    if (name == name_of(f)) return f;
    names += (names.empty() ? "" : ", ") + std::string(name_of(f));
  }
  check(false, "stream: no form is called '", name, "'; there are ", names);
  return {};
}

Stream::Stream(StreamForm form, int64_t width, StreamStorage storage, bool centre_readers)
    : form_(form), width_(width), storage_(storage), centre_readers_(centre_readers) {
  check(width >= 2, "stream: width ", width, " is too small, expected at least 2");
}

int64_t Stream::stored_width() const { return compressed(form_) ? width_ - 1 : width_; }
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

}  // namespace isonorm::nn
