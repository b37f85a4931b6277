// Stream: the coordinates in which a Transformer holds its residual stream. Pre-LN, Pre-RMSNorm and Pre-CRMSNorm are
// one model in different coordinates (Jiang et al., 2305.14858, sections 3.1 and 3.2); this object knows how a writer's
// weight is mapped into them, how a reader's weight reads from them, and which norm belongs to them. With P = I -
// 11^T/d, D = [I; -1^T], Q the Helmert basis of the zero-mean rows:
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
// The last two are models of their own: without norms, and with RMSNorm by definition (Zhang & Sennrich, 1910.07467, as
// LLaMA has it), whose rows keep their mean. No LayerNorm model is the same function.
//
// The maps are differentiable, and bf16 goes through them in f32, rounded once: parameters stay stored as the Pre-LN
// model has them, and every optimizer follows the Pre-LN trajectory.
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

// What a form is, a row each in the order of Form.
struct FormRow {
  Form form;
  const char* name;
  NormKind norm;
  bool centres;     // writers are projected: the model of layer_norm in other coordinates
  bool compressed;  // d - 1 numbers of a row are stored

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

// The forms whose rows have a property: all, those that hold the model of layer_norm, those that do so in other
// coordinates.
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

// The names of forms; as text "rms_norm, crms_norm", with another separator before the last.
std::vector<std::string> names_of(std::span<const Form> forms);
std::string listed(std::span<const Form> forms, const char* last = ", ");
// The form of that name. Throws listing the names.
Form form_named(std::string_view name);

// What the parameters hold: the Pre-LN model's weights, mapped in every forward; or weights that are mapped already,
// used as they are.
enum class Stored { raw, mapped };

// What a model's stream is, but for its width.
struct StreamOptions {
  Form form = Form::layer_norm;
  Stored storage = Stored::raw;
  bool centre_readers = false;  // readers used with zero row sums: the same function, less error in f32 and bf16
  bool operator==(const StreamOptions&) const = default;
};

// The norms of the plain model that a form holds: of the forms of the LayerNorm model, layer.
constexpr NormKind norm_of(Form f) { return row_of(f).layer_norm_model() ? NormKind::layer : row_of(f).norm; }

// The form of a plain model with such norms. Throws where no form holds them.
Form form_of(NormKind norm);

// How a parameter touches the stream: not at all, by writing to it or by reading a normalised row of it.
enum class Role { neutral, writer, reader };

class Stream {
 public:
  // A stream of a Pre-LN model of width d. Readers that are centred read with A P: the same function in exact
  // arithmetic, since A 1 meets the mean of a normalised row alone, and that is 0. In low precision it is not quite,
  // and A P makes the error of second order. Throws where d < 2.
  Stream(Form form, int64_t width, Stored storage = Stored::raw, bool centre_readers = false);
  Stream(const StreamOptions& options, int64_t width)
      : Stream(options.form, width, options.storage, options.centre_readers) {}

  const StreamOptions& options() const { return options_; }
  Form form() const { return options_.form; }
  Stored storage() const { return options_.storage; }
  bool centres_readers() const { return options_.centre_readers; }
  int64_t width() const { return width_; }  // d, of the Pre-LN model
  bool operator==(const Stream&) const = default;
  int64_t stored_width() const;     // of a row of the stream
  int64_t parameter_width() const;  // of the stream's axis in a parameter: d where raw, else the stored width
  bool centres() const { return row_of(form()).centres; }  // whether writers are projected

  // A writer's value into the stream's coordinates, along dimension `dim` (size d). Identity for mapped storage. Throws
  // on a wrong size.
  Tensor write(const Tensor& w, int dim) const;
  // A reader's weight [out, d] so that it reads rows of the stream: [out, stored width]. Identity for mapped storage.
  Tensor read(const Tensor& a) const;
  // A writer's table [rows, parameter width] as a reader's weight [rows, stored width]: a tied head. Raw storage reads
  // it as any reader. Mapped rows B D^T of crms_norm are read with B (D^T D) = B (I + 11^T); in the other forms a
  // mapped table reads as it is.
  Tensor read_table(const Tensor& table) const;
  // As write() and read(), whatever the storage: how a raw weight becomes a mapped one.
  Tensor map_writer(const Tensor& w, int dim) const;
  Tensor map_reader(const Tensor& a) const;
  // The d entries of stored rows [..., stored width]: D v, Q v; in forms that store d, the rows themselves.
  Tensor expand(const Tensor& rows) const;

 private:
  StreamOptions options_;
  int64_t width_;
};

}  // namespace isonorm::streams
