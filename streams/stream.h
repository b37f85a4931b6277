// Stream: the residual stream of a model: the form in which it is stored (streams/form.h), its width, and how
// parameters are stored. It maps a writer's weight into the stream's coordinates and a reader's weight so that it reads
// from them.
//
// The maps are differentiable; bf16 is mapped in f32 and rounded once. Parameters stay stored as in the Pre-LN model,
// so every optimizer follows the Pre-LN trajectory.
#pragma once

#include "streams/form.h"

namespace isonorm::streams {

// How parameters are stored. raw: as in the Pre-LN model, and mapped in every forward. mapped: mapped once, and used as
// they are.
enum class Stored { raw, mapped };

// Everything about a stream except its width.
struct StreamOptions {
  Form form = Form::layer_norm;
  Stored storage = Stored::raw;
  bool centre_readers = false;  // readers have zero row sums: same function, smaller error in f32, bf16
  bool operator==(const StreamOptions&) const = default;
};

class Stream {
 public:
  // A stream for a Pre-LN model of width d. Centred readers read with A P: the same function in exact arithmetic,
  // because A - A P sees only the mean of a normalized row, which is 0. In low precision that mean is not quite 0, and
  // A P makes the error of second order. Throws if d < 2, or if readers are to be centred and the form's rows have a
  // mean.
  Stream(Form form, int64_t width, Stored storage = Stored::raw, bool centre_readers = false);
  Stream(const StreamOptions& options, int64_t width)
      : Stream(options.form, width, options.storage, options.centre_readers) {}

  const StreamOptions& options() const { return options_; }
  Form form() const { return options_.form; }
  Stored storage() const { return options_.storage; }
  bool centres_readers() const { return options_.centre_readers; }
  int64_t width() const { return width_; }  // d, the width of the Pre-LN model
  bool operator==(const Stream& other) const { return options_ == other.options_ && width_ == other.width_; }
  int64_t stored_width() const { return writer_.outputs(); }  // entries of a stored row of the stream
  // The stream's axis in a parameter: d if raw, else the stored width.
  int64_t parameter_width() const { return storage() == Stored::raw ? width_ : stored_width(); }
  bool centres() const { return !writer_.is_identity(); }  // whether writers lose their mean

  // Maps a writer's value into the stream's coordinates, along dimension `dim` (size d). Identity for mapped storage.
  // Throws on a wrong size.
  Tensor write(const Tensor& w, int dim) const;
  // Maps a reader's weight [out, d] so that it reads stored rows: [out, stored width]. Identity for mapped storage.
  Tensor read(const Tensor& a) const;
  // A tied head: maps a table [rows, parameter width] of a writer to a reader's weight [rows, stored width]. A raw
  // table is read like any reader, a mapped one as in FormRow::table().
  Tensor read_table(const Tensor& table) const;
  // Map a raw weight to a mapped weight: write() and read() for raw storage, whatever this stream's storage is.
  Tensor map_writer(const Tensor& w, int dim) const { return writer_(w, dim); }
  Tensor map_reader(const Tensor& a) const { return reader_(a, -1); }
  // The d entries of stored rows [..., stored width]: D v or Q v; in forms that store d entries, the rows themselves.
  Tensor expand(const Tensor& rows) const { return expand_(rows, -1); }

 private:
  StreamOptions options_;
  int64_t width_;
  Map writer_, reader_, table_, expand_;  // from raw parameters, from a stored table, from stored rows
};

}  // namespace isonorm::streams
