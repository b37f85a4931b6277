// Mistakes in hand-written modules, losses and optimizers, planted by an author who had not read how causes are found.
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

// The hand-written nets and optimizers without a mistake.
std::vector<equivalence::Comparison> right_nets();
equivalence::Comparison right_adam();
equivalence::Comparison right_momentum();

}  // namespace isonorm::unseen
