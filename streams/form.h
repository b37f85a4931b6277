// Form: the coordinates in which a Transformer stores its residual stream. Pre-LN, Pre-RMSNorm and Pre-CRMSNorm are one
// model in different coordinates (Jiang et al., 2305.14858, sections 3.1 and 3.2). A form is a row of a table: the maps
// of writers and readers, and the norm that belongs to the coordinates. With P = I - 11^T/d, D = [I; -1^T], Q the
// Helmert basis of the zero-mean rows:
//
// clang-format off
//   form            stored width  writer W becomes       reader A becomes           norm of a stored row v
//   layer_norm      d             W                      A                          LayerNorm(v)
//   rms_norm        d             P W                    A                          v / sqrt(|v|^2/d + eps)
//   crms_norm       d - 1         first d-1 rows of PW   A D = A[:, :-1] - A[:, -1] v / sqrt((|v|^2+sum(v)^2)/d + eps)
//   crms_isometric  d - 1         Q^T W                  A Q                        v / sqrt(|v|^2/d + eps)
//   none            d             W                      A                          v
//   uncentred_rms_norm  d         W                      A                          v / sqrt(|v|^2/d + eps)
// clang-format on
//
// The last two are models of their own: without norms, and with RMSNorm by definition (Zhang & Sennrich, 1910.07467;
// LLaMA). Their rows keep their mean, and no LayerNorm model computes the same function.
//
// Code that depends on the form asks its row. A new form is a new row: in form.cpp, or at run time as a RegisteredForm.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/formulas/norm_spec.h"
#include "streams/map.h"

namespace isonorm::streams {

// Names a row: its number in the table.
enum class Form { layer_norm, rms_norm, crms_norm, crms_isometric, none, uncentred_rms_norm };

// How a parameter touches the stream: not at all, by writing to it, or by reading a normalized row.
enum class Role { neutral, writer, reader };

struct FormRow {
  const char* name;
  NormKind norm;  // of a stored row
  // The map of a parameter, along its stream_dim, from a stream of width d to the stored coordinates: d to d, or d to
  // d - 1. A product of maps is not supported.
  Map (*writer)(int64_t d);
  Map (*reader)(int64_t d);
  bool orthonormal = false;  // writers and readers have one map M, with M M* = I
  // The entry that is not stored is minus the sum of the others. A stored writer is rounded so that the sum is right,
  // too: each entry to a neighbour in the format (equivalence/convert/sum_rounding.h).
  bool rounds_with_sum = false;
  // Words for reports: the norm, a writer W and a reader A in these coordinates, a row x that enters the stream; and
  // the CSS class of the form's curves.
  const char *norm_name = "RMSNorm", *writer_text = "W", *reader_text = "A", *entry_text = "x", *css = "other";

  // All that follows from the maps and the norm.
  bool centres() const { return !writer(2).is_identity(); }              // writers lose their mean
  bool compressed() const { return stored_width(2) < 2; }                // d - 1 entries of a row are stored
  bool zero_mean_writers() const { return centres() && !compressed(); }  // stored writers [d] have a mean of 0
  bool normed() const { return norm != NormKind::none; }
  // The LayerNorm model, in some coordinates: zero-mean rows, or a norm that subtracts the mean.
  bool layer_norm_model() const { return norm == NormKind::layer || centres(); }
  // Stored parameters are the LayerNorm model's own.
  bool raw() const { return layer_norm_model() && !centres(); }
  // The norm divides a row by its length, whatever the basis.
  bool rotates() const { return norm == NormKind::rms || norm == NormKind::crms_isometric; }
  // The norm of the plain model: layer for all forms of the LayerNorm model.
  NormKind plain_norm() const { return layer_norm_model() ? NormKind::layer : norm; }
  int64_t stored_width(int64_t d) const { return writer(d).outputs(); }

  // The map of a writer or reader. Throws for a neutral role.
  Map map(Role role, int64_t d) const;
  // A tied head, from the stored table [rows, stored width] to the head's weight: D^T D = I + 11^T in crms_norm, since
  // the rows of a mapped table B are B D^T; the identity if nothing is compressed or the map is orthonormal.
  Map table(int64_t d) const;
  // From a stored row to its d entries: D or Q, or the identity.
  Map expand(int64_t d) const;
  // From a stored writer or reader to the LayerNorm model's, without its mean, which the function does not see. The
  // identity in forms of other models.
  Map canonical(Role role, int64_t d) const;
};

const FormRow& row_of(Form form);
inline const char* name_of(Form form) { return row_of(form).name; }
// Finds the form with this name; null if there is none.
const FormRow* find_row(std::string_view name);
// Finds the form with this name. If there is none, throws an error that lists the names.
Form form_named(std::string_view name);

// The forms whose rows have a property; all; the forms of the LayerNorm model; and these without layer_norm.
using Forms = std::vector<Form>;
Forms forms_that(bool (FormRow::*property)() const);
Forms all_forms();
inline Forms layer_norm_forms() { return forms_that(&FormRow::layer_norm_model); }
inline Forms centred_forms() { return forms_that(&FormRow::centres); }

// The names of forms, as a list or as text "rms_norm, crms_norm"; `last` is the separator before the last name.
std::vector<std::string> names_of(const Forms& forms);
std::string listed(const Forms& forms, const char* last = ", ");

// Returns the form of a plain model with this kind of norm. Throws if no form has this norm.
Form form_of(NormKind norm);
inline NormKind norm_of(Form form) { return row_of(form).plain_norm(); }
// The form that stores the same parameters for the same norm, whose rows may have a mean: uncentred_rms_norm for
// rms_norm. The form itself if there is none.
Form uncentred(Form form);

// A row that is in the table while this object lives. The strings and maps must live as long. Objects are destroyed in
// the reverse order. Not for two threads at a time. Throws if the name is taken.
class RegisteredForm {
 public:
  explicit RegisteredForm(const FormRow& row);
  ~RegisteredForm();
  RegisteredForm(const RegisteredForm&) = delete;
  RegisteredForm& operator=(const RegisteredForm&) = delete;
  operator Form() const { return form_; }

 private:
  Form form_;
};

}  // namespace isonorm::streams
