// The ways to store and update a model's weights, as data: the stored values, the map in the forward,
// the changes to gradients before the optimizer and to weights after it. expectation.h derives from these fields, and
// from measured properties of the optimizer, which variants follow the Pre-LN trajectory.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "streams/stream.h"

namespace isonorm::equivalence {

// Removal of a mean: of writers along the stream (P W), or also of readers (A P).
enum class Projection { none, writers, writers_and_readers };

// The gradient that the optimizer gets. M is the map from raw parameters to stored ones (map.h), g the gradient of a
// stored one:
//   as_is   g
//   metric  M M* g: the step in stored coordinates that a linear optimizer on raw weights would make. P g in rms_norm.
//   lifted  M* g: the optimizer runs in raw coordinates (lifted.h)
enum class GradientRule { as_is, metric, lifted };

struct Variant {
  const char *alias, *name;  // "a5", "projected_gradients_and_weights"
  streams::Form form;
  streams::Stored storage;
  Projection start;  // done once, before training
  GradientRule gradients;
  Projection after_step;

  // Raw Pre-LN parameters, untouched: the forward does everything.
  bool raw() const;
  // "raw", or the name. It distinguishes runs with the same form.
  const char* parametrisation() const { return raw() ? "raw" : name; }
};

// a1 to a7, b, c1 to c5, d1, d2.
std::span<const Variant> variants();
// The variant with this name or alias. Throws listing both.
const Variant& variant(std::string_view name);
// Raw parameters on a stream of this form: b, c2, c5, for layer_norm the reference, for a registered form "raw_<name>".
// Throws if the form is not a form of the LayerNorm model.
const Variant& raw_variant(streams::Form form);

// One sentence each, made from the fields above.
std::string stores(const Variant& v);
std::string maps_forward(const Variant& v);
std::string treats_gradients(const Variant& v);
std::string treats_weights(const Variant& v);

}  // namespace isonorm::equivalence
