#include "equivalence/coordinates/variant.h"

#include <map>
#include <mutex>

#include "core/error.h"
#include "streams/stream.h"

namespace isonorm::equivalence {
namespace {

using enum Projection;
using enum GradientRule;
using streams::Form;
using streams::Stored;

constexpr Form kLayer = Form::layer_norm, kRms = Form::rms_norm, kCrms = Form::crms_norm,
               kIsometric = Form::crms_isometric;
constexpr Stored kRaw = Stored::raw, kMapped = Stored::mapped;
constexpr Projection kBoth = writers_and_readers;

constexpr Variant kReference = {"-", "raw_layer_norm", kLayer, kRaw, none, as_is, none};

//   alias, name, form, storage, at the start, gradients, after each step
constexpr Variant kVariants[] = {
    {"a1", "layer_norm_projected_once", kLayer, kRaw, writers, as_is, none},
    {"a2", "projected_once", kRms, kMapped, writers, as_is, none},
    {"a3", "projected_gradients", kRms, kMapped, writers, metric, none},
    {"a4", "projected_weights", kRms, kMapped, writers, as_is, writers},
    {"a5", "projected_gradients_and_weights", kRms, kMapped, writers, metric, writers},
    {"a6", "both_projected_once", kRms, kMapped, kBoth, as_is, none},
    {"a7", "both_projected_weights", kRms, kMapped, kBoth, as_is, kBoth},
    {"b", "raw_rms_norm", kRms, kRaw, none, as_is, none},
    {"c1", "compressed_plain", kCrms, kMapped, none, as_is, none},
    {"c2", "raw_crms_norm", kCrms, kRaw, none, as_is, none},
    {"c3", "compressed_metric", kCrms, kMapped, none, metric, none},
    {"c4", "compressed_lifted", kCrms, kMapped, none, lifted, none},
    {"c5", "raw_crms_isometric", kIsometric, kRaw, none, as_is, none},
    {"d1", "isometric_plain", kIsometric, kMapped, none, as_is, none},
    {"d2", "isometric_lifted", kIsometric, kMapped, none, lifted, none},
};

}  // namespace

bool Variant::raw() const { return storage == kRaw && start == none; }

std::span<const Variant> variants() { return kVariants; }

const Variant& variant(std::string_view name) {
  std::string names;
  for (const Variant& v : kVariants) {
    if (name == v.name || name == v.alias) return v;
    names += text(names.empty() ? "" : ", ", v.alias, " ", v.name);
  }
  check(false, "variant: none is called '", name, "'; there are ", names);
  return kReference;
}

const Variant& raw_variant(Form form) {
  const streams::FormRow& row = row_of(form);
  check(row.layer_norm_model(), "variant: ", row.name, " has no raw variant");
  if (kReference.form == form) return kReference;
  for (const Variant& v : kVariants)
    if (v.raw() && v.form == form) return v;
  struct Made {
    std::string name = {};
    Variant variant = {};
  };
  static std::mutex mutex;
  static auto& made = *new std::map<Form, Made>;  // of registered forms
  const std::lock_guard lock(mutex);
  Made& of = made[form];
  if (const std::string name = text("raw_", row.name); of.name != name)
    of.name = name, of.variant = {"-", of.name.c_str(), form, kRaw, none, as_is, none};
  return of.variant;
}

std::string stores(const Variant& v) {
  const char* projected = v.start == writers ? ", writers recentred once"
                          : v.start == kBoth ? ", writers and readers recentred once"
                                             : "";
  const streams::FormRow& row = row_of(v.form);
  if (v.storage == kRaw || !row.compressed()) return text("the Pre-LN weights", projected);
  return text("d - 1 ", row.orthonormal ? "orthonormal" : "of d", " coordinates: ", row.writer_text, " of a writer, ",
              row.reader_text, " of a reader");
}

std::string maps_forward(const Variant& v) {
  const streams::FormRow& row = row_of(v.form);
  if (row.raw() || v.storage == kMapped) return text("nothing; ", row.norm_name, " reads the stream");
  const std::string readers = row.compressed() ? text(", readers to ", row.reader_text) : "";
  return text("writers to ", row.writer_text, readers, "; ", row.norm_name, " reads the stream");
}

std::string treats_gradients(const Variant& v) {
  if (v.gradients == as_is) return "given to the optimizer unchanged";
  if (v.gradients == metric)
    return row_of(v.form).compressed() ? "multiplied by the inverse metric of the coordinates before the optimizer"
                                       : "writers' gradients are recentred before the optimizer";
  return "lifted to raw coordinates, where the optimizer and its state live";
}

std::string treats_weights(const Variant& v) {
  if (v.gradients == lifted) return "the updated raw weights are mapped back to the stored ones";
  if (v.after_step == writers) return "writers are recentred after every step";
  return v.after_step == kBoth ? "writers and readers are recentred after every step" : "nothing";
}

}  // namespace isonorm::equivalence
