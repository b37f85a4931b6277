// Mistakes in modules, losses and optimizers written by hand, planted by an author who had not read how causes are
// found.
#pragma once

#include "isonorm.h"
#include "tests/equivalence/planted.h"

namespace isonorm::unseen {

struct Mistake {
  equivalence::Planted expected;
  std::function<equivalence::Comparison()> compare;
};

std::vector<Mistake> block_mistakes();
std::vector<Mistake> attention_mistakes();
std::vector<Mistake> loss_mistakes();
std::vector<Mistake> image_mistakes();
std::vector<Mistake> adam_mistakes();
std::vector<Mistake> momentum_mistakes();

// Without a mistake.
equivalence::Comparison right_writer();
std::vector<equivalence::Comparison> right_nets();
std::vector<equivalence::Comparison> right_optimizers();

// The second model keeps a state between its calls.
std::vector<equivalence::Comparison> unrepeatable_writers();

}  // namespace isonorm::unseen
