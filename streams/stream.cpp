#include "streams/stream.h"

namespace isonorm::streams {
namespace {

// The form, if it has a stream of this kind.
const FormRow& checked(Form form, int64_t width, bool centre_readers) {
  check(width >= 2, "stream: width ", width, " is too small, expected at least 2");
  const FormRow& row = row_of(form);
  check(!centre_readers || row.layer_norm_model(), "stream: the rows of ", row.name,
        " have a mean, which centred readers would not see");
  return row;
}

// The map of raw readers. Compressed readers, A D or A Q, are the same for A and A P.
Map reader_of(const FormRow& form, int64_t width, bool centre_readers) {
  return centre_readers && !form.compressed() ? Map::recentre(width) : form.reader(width);
}

}  // namespace

Stream::Stream(Form form, int64_t width, Stored storage, bool centre_readers)
    : options_{form, storage, centre_readers},
      width_(width),
      writer_(checked(form, width, centre_readers).writer(width)),
      reader_(reader_of(row_of(form), width, centre_readers)),
      table_(row_of(form).table(width)),
      expand_(row_of(form).expand(width)) {}

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
  return storage() == Stored::raw ? read(table) : table_(table, -1);
}

}  // namespace isonorm::streams
