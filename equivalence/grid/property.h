// Properties of an optimizer's update, as predicates.h measures them and expectation.h asks for them.
#pragma once

#include <cstddef>

namespace isonorm::equivalence {

// Their formulas are in kPropertyWords.
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

// U(G, w): the weights after some steps from w under the history G of gradients. O and T act along the stream's axis of
// writers and readers and leave neutral parameters alone; P takes the mean along it away; m is a number per row. P G =
// G, as Pre-LN has it (F3, F4), except where a mean is added to it, and in H of centres_writers.
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

}  // namespace isonorm::equivalence
