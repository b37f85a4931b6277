// Properties of an optimizer's update, measured on the optimizer itself without a model: tensors with the names, shapes
// and roles of a model's parameters, random weights and random histories of gradients. expectation.h derives from them
// which ways to store weights follow Pre-LN.
#pragma once

#include <array>
#include <vector>

#include "equivalence/grid/update.h"
#include "streams/parametrize.h"

namespace isonorm::equivalence {

// kPropertyWords has their formulas.
enum class Property {
  repeats,
  linear,
  rotates,
  covariant,
  any_width,
  writers_mean_unseen,
  readers_mean_unseen,
  keeps_writers,
  keeps_readers,
  gradient_mean_unseen,
  centres_writers,
  ignores_weights,
  tensors_apart
};
inline constexpr int kProperties = 13;

// U(G, w): the weights after some steps from w with the gradients G. O and T act along the stream's axis of writers and
// readers, and leave neutral parameters alone. P removes the mean along this axis. m is one number per row. P G = G, as
// in Pre-LN (F3, F4), except if a mean is added to G, and for H in centres_writers.
inline constexpr struct {
  const char *name, *formula;
} kPropertyWords[kProperties] = {
    {"repeats", "U(G, w) is the same twice, to the last bit"},
    {"linear", "U(aG + bH, aw + bv) = a U(G, w) + b U(H, v)"},
    {"rotates", "U(OG, Ow) = O U(G, w) for orthogonal O along the stream"},
    {"covariant", "U(T^-T G, Tw) = T U(G, w) for invertible T along the stream"},
    {"any_width", "a coordinate of the stream that is zero in G and w may be left out"},
    {"writers_mean_unseen", "P U(G, w + 1m) = P U(G, w) for writers, their means moved before and after every step"},
    {"readers_mean_unseen", "the same for readers"},
    {"keeps_writers", "P w = w gives P U(G, w) = U(G, w) for writers"},
    {"keeps_readers", "the same for readers"},
    {"gradient_mean_unseen", "P U(G + 1m, w) = P U(G, w) for writers, recentred after every step"},
    {"centres_writers", "P w = w gives P U(H, w) = U(H, w) for writers and any H"},
    {"ignores_weights", "U(G, w + v) - v = U(G, w)"},
    {"tensors_apart", "the gradient of a tensor moves no other one"},
};

constexpr const char* name_of(Property p) { return kPropertyWords[static_cast<size_t>(p)].name; }
constexpr const char* formula_of(Property p) { return kPropertyWords[static_cast<size_t>(p)].formula; }

// Largest deviation between the two sides, relative to the tensor's movement, and the deviation that rounding explains:
// bound() of criterion.h, applied to the deviation of U(G, w) if every entry of G and w moves by eps of its tensor's
// largest.
struct Measured {
  bool holds = false;
  double deviation = 0, tolerance = 0;  // of the tensor and step with the largest deviation / tolerance
};

struct Predicates {
  std::array<Measured, kProperties> measured{};

  const Measured& at(Property p) const { return measured[static_cast<size_t>(p)]; }
  bool operator()(Property p) const { return at(p).holds; }
};

// Measures all properties over histories of `steps` steps in f64, one per seed. The gradients of the seeds have
// standard deviation 1, 0.1, 0.01 in turn, so that limits act in some and not in others. A property holds if it does
// for every seed and tensor, up to rounding. like: names, shapes, roles and blind rows (gradient zero) of the
// parameters of a raw model; their values are not read. Throws if nothing can be concluded: a seed moves no writer or
// no reader, a number is not finite, or a deviation is neither rounding nor at least 1e-6.
Predicates measure(const MakeUpdate& make, const std::vector<streams::NamedParameter>& like, int seeds = 3,
                   int steps = 4);

}  // namespace isonorm::equivalence
