#include "streams/form.h"

#include <deque>
#include <functional>

namespace isonorm::streams {
namespace {

constexpr auto kIdentity = [](int64_t d) { return Map::identity(d); };
constexpr auto kIsometric = [](int64_t d) { return Map::isometric(d); };

// In the order of Form; registered rows follow.
std::deque<FormRow>& rows() {
  static auto& rows = *new std::deque<FormRow>{
      {.name = "layer_norm",
       .norm = NormKind::layer,
       .writer = kIdentity,
       .reader = kIdentity,
       .norm_name = "LayerNorm",
       .css = "reference"},
      {.name = "rms_norm",
       .norm = NormKind::rms,
       .writer = Map::recentre,
       .reader = kIdentity,
       .writer_text = "P W",
       .entry_text = "x minus its mean",
       .css = "rms"},
      {.name = "crms_norm",
       .norm = NormKind::crms,
       .writer = Map::compress,
       .reader = Map::compress_reader,
       .rounds_with_sum = true,
       .norm_name = "CRMSNorm",
       .writer_text = "the first d - 1 rows of P W",
       .reader_text = "A D",
       .entry_text = "the first d - 1 entries, minus the mean of all d,",
       .css = "crms"},
      {.name = "crms_isometric",
       .norm = NormKind::crms_isometric,
       .writer = kIsometric,
       .reader = kIsometric,
       .orthonormal = true,
       .norm_name = "CRMSNorm",
       .writer_text = "Q^T W",
       .reader_text = "A Q",
       .entry_text = "Q^T x, with Q the Helmert basis,",
       .css = "isometric"},
      {.name = "none", .norm = NormKind::none, .writer = kIdentity, .reader = kIdentity},
      {.name = "uncentred_rms_norm", .norm = NormKind::rms, .writer = kIdentity, .reader = kIdentity}};
  return rows;
}

template <class Has> Forms found(Has&& has) {
  Forms forms;
  for (size_t i = 0; i < rows().size(); ++i)
    if (has(rows()[i])) forms.push_back(static_cast<Form>(i));
  return forms;
}

}  // namespace

Map FormRow::map(Role role, int64_t d) const {
  check(role != Role::neutral, "map: a neutral parameter does not touch the stream");
  return role == Role::writer ? writer(d) : reader(d);
}

Map FormRow::expand(int64_t d) const { return compressed() ? writer(d).right_inverse() : Map::identity(d); }

Map FormRow::table(int64_t d) const {
  return compressed() && !orthonormal ? reader(d) * expand(d) : Map::identity(stored_width(d));
}

Map FormRow::canonical(Role role, int64_t d) const {
  if (compressed()) return map(role, d).right_inverse();
  return layer_norm_model() ? Map::recentre(d) : Map::identity(d);
}

const FormRow& row_of(Form form) { return rows()[static_cast<size_t>(form)]; }

const FormRow* find_row(std::string_view name) {
  for (const FormRow& row : rows())
    if (name == row.name) return &row;
  return nullptr;
}

Form form_named(std::string_view name) {
  const Forms forms = found([&](const FormRow& row) { return name == row.name; });
  check(!forms.empty(), "stream: no form is called '", name, "'; there are ", listed(all_forms()));
  return forms[0];
}

Forms forms_that(bool (FormRow::*property)() const) {
  return found([&](const FormRow& row) { return (row.*property)(); });
}

Forms all_forms() {
  return found([](const FormRow&) { return true; });
}

std::vector<std::string> names_of(const Forms& forms) {
  std::vector<std::string> names;
  for (Form f : forms) names.emplace_back(name_of(f));
  return names;
}

std::string listed(const Forms& forms, const char* last) {
  std::string names;
  for (size_t i = 0; i < forms.size(); ++i)
    names += text(i == 0 ? "" : i + 1 == forms.size() ? last : ", ", name_of(forms[i]));
  return names;
}

Form form_of(NormKind norm) {
  const Forms forms = found([&](const FormRow& row) { return row.plain_norm() == norm; });
  check(!forms.empty(), "stream: no form is of a plain model with norms ", name_of(norm));
  return forms[0];
}

Form uncentred(Form form) {
  const FormRow& own = row_of(form);
  const Forms forms = found([&](const FormRow& row) { return row.norm == own.norm && !row.centres(); });
  return forms.empty() ? form : forms[0];
}

RegisteredForm::RegisteredForm(const FormRow& row) : form_(static_cast<Form>(rows().size())) {
  check(!find_row(row.name), "stream: there is a form called '", row.name, "' already");
  rows().push_back(row);
}

RegisteredForm::~RegisteredForm() { rows().pop_back(); }

}  // namespace isonorm::streams
