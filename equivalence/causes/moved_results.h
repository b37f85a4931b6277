// Internal: rounding, for controls: weights, and results of ops, moved by one unit in the last place. Entries move up
// or down at random by a seed. compare_gradients() moves whole models at every point, so a draw of Philox serves 128
// entries. Proofs use moved_by_ulps(), a draw for each entry: their published figures depend on it.
#pragma once

#include "autograd/node.h"
#include "nn/module.h"

namespace isonorm::equivalence {

// A model whose weights are moved. At its end they are as they were.
class MovedWeights {
 public:
  // f64 and f32.
  [[nodiscard]] explicit MovedWeights(const nn::Module& model);
  ~MovedWeights();
  MovedWeights(const MovedWeights&) = delete;
  MovedWeights& operator=(const MovedWeights&) = delete;

  // Moves each entry that is finite and not 0 to a neighbour of its value at the beginning.
  void move(uint64_t seed) const;

 private:
  std::vector<std::pair<Tensor, Tensor>> weights_;  // parameter, copy
};

// While it lives, each new result of a floating op that this thread records is moved by one unit in the last place,
// element by element up or down, drawn from `seed`. These stay: views, infinities and NaN; the largest numbers of the
// dtype, which are masks; whole numbers, which are exact as a rule (0, 1, counts); results of amax and amin, which
// select an entry and round nothing, and whose rules look for it.
class MovedResults {
 public:
  [[nodiscard]] explicit MovedResults(uint64_t seed);

 private:
  void move(const char* op, const Tensor& result);

  uint64_t seed_;
  uint64_t ops_ = 0;  // that were moved
  autograd::OpWatch watch_;
};

}  // namespace isonorm::equivalence
