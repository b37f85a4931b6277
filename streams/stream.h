// Stream: the coordinates in which a Transformer stores its residual stream. Pre-LN, Pre-RMSNorm and Pre-CRMSNorm are
// one model in different coordinates (Jiang et al., 2305.14858, sections 3.1 and 3.2). A Stream knows how to map a
// writer's weight into its coordinates, how to map a reader's weight so that it reads from them, and the norm that
// belongs to them. With P = I - 11^T/d, D = [I; -1^T], Q the Helmert basis of the zero-mean rows:
//
// clang-format off
//   form            stored width  writer W becomes        reader A becomes            norm of a stored row v
//   layer_norm      d             W                       A                           LayerNorm(v)
//   rms_norm        d             P W                     A                           v / sqrt(|v|^2/d + eps)
//   crms_norm       d - 1         first d - 1 rows of PW  A D = A[:, :-1] - A[:, -1]  v / sqrt((|v|^2 + (sum v)^2)/d + eps)
//   crms_isometric  d - 1         Q^T W                   A Q                         v / sqrt(|v|^2/d + eps)
//   none            d             W                       A                           v
//   uncentred_rms_norm  d         W                       A                           v / sqrt(|v|^2/d + eps)
// clang-format on
//
// The last two are models of their own: without norms, and with RMSNorm by definition (Zhang & Sennrich, 1910.07467;
// LLaMA). Their rows keep their mean, and no LayerNorm model computes the same function.
//
// The maps are differentiable; bf16 is mapped in f32 and rounded once. Parameters stay stored as in the Pre-LN model,
// so every optimizer follows the Pre-LN trajectory.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/formulas/norm_spec.h"
#include "streams/coordinates.h"

namespace isonorm::streams {

enum class Form { layer_norm, rms_norm, crms_norm, crms_isometric, none, uncentred_rms_norm };

// The properties of a form; the rows are in the order of Form.
struct FormRow {
  Form form;
  const char* name;
  NormKind norm;
  bool centres;     // writers are projected: LayerNorm's model in other coordinates
  bool compressed;  // stores d - 1 numbers of a row

  constexpr bool known() const { return true; }
  constexpr bool normed() const { return norm != NormKind::none; }
  constexpr bool layer_norm_model() const { return centres || norm == NormKind::layer; }
};
inline constexpr FormRow kFormRows[] = {{Form::layer_norm, "layer_norm", NormKind::layer, false, false},
                                        {Form::rms_norm, "rms_norm", NormKind::rms, true, false},
                                        {Form::crms_norm, "crms_norm", NormKind::crms, true, true},
                                        {Form::crms_isometric, "crms_isometric", NormKind::crms_isometric, true, true},
                                        {Form::none, "none", NormKind::none, false, false},
                                        {Form::uncentred_rms_norm, "uncentred_rms_norm", NormKind::rms, false, false}};
constexpr const FormRow& row_of(Form f) { return kFormRows[static_cast<size_t>(f)]; }
constexpr const char* name_of(Form f) { return row_of(f).name; }

// The forms that have a property. kForms: all; kLayerNormForms: the forms of the LayerNorm model; kCentredForms: the
// same without layer_norm itself.
template <auto property> constexpr auto forms_that() {
  constexpr auto has = [](const FormRow& row) { return std::invoke(property, row); };
  std::array<Form, std::count_if(std::begin(kFormRows), std::end(kFormRows), has)> forms{};
  size_t n = 0;
  for (const FormRow& row : kFormRows)
    if (has(row)) forms[n++] = row.form;
  return forms;
}
inline constexpr auto kForms = forms_that<&FormRow::known>();
inline constexpr auto kLayerNormForms = forms_that<&FormRow::layer_norm_model>();
inline constexpr auto kCentredForms = forms_that<&FormRow::centres>();

// The names of forms, as a list or as text "rms_norm, crms_norm"; `last` is the separator before the last name.
std::vector<std::string> names_of(std::span<const Form> forms);
std::string listed(std::span<const Form> forms, const char* last = ", ");
// The form with this name. Throws if there is none, listing the names.
Form form_named(std::string_view name);

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

// The norm of the plain model of a form: layer for all forms of the LayerNorm model.
constexpr NormKind norm_of(Form f) { return row_of(f).layer_norm_model() ? NormKind::layer : row_of(f).norm; }

// The form of a plain model with this kind of norm. Throws if there is none.
Form form_of(NormKind norm);

// How a parameter touches the stream: not at all, by writing to it, or by reading a normalized row of it.
enum class Role { neutral, writer, reader };

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
  bool operator==(const Stream&) const = default;
  int64_t stored_width() const;     // entries of a stored row of the stream
  int64_t parameter_width() const;  // the stream's axis in a parameter: d if raw, else the stored width
  bool centres() const { return row_of(form()).centres; }  // whether writers are projected

  // Maps a writer's value into the stream's coordinates, along dimension `dim` (size d). Identity for mapped storage.
  // Throws on a wrong size.
  Tensor write(const Tensor& w, int dim) const;
  // Maps a reader's weight [out, d] so that it reads stored rows: [out, stored width]. Identity for mapped storage.
  Tensor read(const Tensor& a) const;
  // A tied head: maps a table [rows, parameter width] of a writer to a reader's weight [rows, stored width]. A raw
  // table is read like any reader. In crms_norm a mapped table B has the rows B D^T of the stream, so the head reads
  // with B (D^T D) = B (I + 11^T). Other forms use a mapped table unchanged.
  Tensor read_table(const Tensor& table) const;
  // Map a raw weight to a mapped weight: write() and read() for raw storage, whatever this stream's storage is.
  Tensor map_writer(const Tensor& w, int dim) const;
  Tensor map_reader(const Tensor& a) const;
  // The d entries of stored rows [..., stored width]: D v or Q v; in forms that store d entries, the rows themselves.
  Tensor expand(const Tensor& rows) const;

 private:
  StreamOptions options_;
  int64_t width_;
};

}  // namespace isonorm::streams
