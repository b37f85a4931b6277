// The ways in which a model's weights can be stored and updated, as data: what is stored, what the forward maps, what
// happens to gradients before the optimizer and to weights after it. Which of them follow the Pre-LN trajectory under
// which class of optimizer is the table in docs/normalization.md; `theory` is its row.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "nn/stream.h"

namespace isonorm::equivalence {

// What a projection takes away: the mean of a writer along the stream (P W), also that of a reader (A P).
enum class Projection { none, writers, writers_and_readers };

// What the optimizer is given. With M the map from raw parameters to stored ones (map.h), g the gradient of a stored
// one:
//   as_is   g
//   metric  M M* g: the step in stored coordinates that a linear optimizer on raw weights would make. P g in rms_norm.
//   lifted  M* g: the optimizer runs in raw coordinates (lifted.h)
enum class GradientRule { as_is, metric, lifted };

// Classes of optimizers by what an update depends on, G being the history of gradients and w the weights.
//   linear    linear in G and w: SGD, momentum, Nesterov, with L2 or decoupled decay
//   clipped   linear, with G scaled by its global norm
//   elementwise  nonlinear in the entries of G, linear in w: Adam, AdamW, sign, Lion, RMSprop, value clipping
//   weighted  nonlinear in w, or in G and w together: Adam with L2, LAMB, LARS, clipping after L2 was added
//   spectral  linear in w, with U(X G Y^T) = X U(G) Y^T for X, Y with orthonormal columns: matrices under Muon
//   shaped    spectral, at a rate that depends on the shape of the stored matrix
// (O1 to O4, and two more.) An optimizer of several parts belongs to the class with the fewest '=' of all of them.
enum class UpdateClass { linear, clipped, elementwise, weighted, spectral, shaped };
const char* name_of(UpdateClass update);

enum class Expectation { same, different, undefined };
const char* name_of(Expectation expectation);  // "same", "different", "n/a"

struct Variant {
  const char *alias, *name;  // "a5", "projected_gradients_and_weights"
  nn::StreamForm form;
  nn::StreamStorage storage;
  Projection start;  // done once, before training
  GradientRule gradients;
  Projection after_step;
  const char* theory;  // per class in order: '=' same, '!' different, '-' undefined (raw weights are needed and gone)

  // Raw Pre-LN parameters, untouched: the forward does everything.
  bool raw() const;
  // "raw", or the name: what tells runs of one form apart.
  const char* parametrisation() const { return raw() ? "raw" : name; }
  Expectation expectation(UpdateClass update) const;
};

// a1 to a7, b, c1 to c5, d1, d2.
std::span<const Variant> variants();
// By name or alias. Throws listing both.
const Variant& variant(std::string_view name);
// Raw parameters on a stream of that form: b, c2, c5, and for layer_norm the reference. Throws on `none`.
const Variant& raw_variant(nn::StreamForm form);

// One sentence each, made from the fields above.
std::string stores(const Variant& v);
std::string maps_forward(const Variant& v);
std::string treats_gradients(const Variant& v);
std::string treats_weights(const Variant& v);

}  // namespace isonorm::equivalence
