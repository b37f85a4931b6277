#include "core/random.h"

namespace isonorm {

Generator& default_generator() {
  thread_local Generator generator;
  return generator;
}

void manual_seed(uint64_t seed) { default_generator() = {seed, 0}; }

}  // namespace isonorm
