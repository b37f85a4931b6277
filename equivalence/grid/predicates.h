// What an optimizer's update depends on, measured on the optimizer itself: no model, only tensors with the names,
// shapes and roles of a model's parameters, random weights and random histories of gradients. expectation.h draws from
// it which ways to store weights follow Pre-LN.
#pragma once

#include <array>
#include <vector>

#include "equivalence/grid/property.h"
#include "equivalence/grid/update.h"
#include "streams/parametrize.h"

namespace isonorm::equivalence {

// Largest deviation between the two sides, relative to how far the tensor moves, and what rounding explains: bound() of
// criterion.h over the deviation between U(G, w) and U of G and w with every entry moved by eps of its tensor's
// largest.
struct Measured {
  bool holds = false;
  double deviation = 0, tolerance = 0;  // where they are closest to each other, or furthest apart
};

struct Predicates {
  std::array<Measured, kProperties> measured{};

  const Measured& at(Property p) const { return measured[static_cast<size_t>(p)]; }
  bool operator()(Property p) const { return at(p).holds; }
};

// Measures all properties over histories of `steps` steps in f64, one per seed, whose gradients have standard deviation
// 1, 0.1, 0.01 in turn: limits act in some and not in others. A property holds if it does for every seed and tensor, to
// rounding. `like`: names, shapes, roles and blind rows (gradient zero) of the parameters of a raw model; the values
// are not read. Throws where nothing can be concluded: a seed moves no writer or no reader, a number is not finite, or
// a deviation is neither rounding nor at least 1e-6.
Predicates measure(const MakeUpdate& make, const std::vector<streams::NamedParameter>& like, int seeds = 3,
                   int steps = 4);

}  // namespace isonorm::equivalence
