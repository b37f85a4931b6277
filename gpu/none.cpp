// A library without CUDA: what core asks of gpu/ says so.
#include "core/memory/storage.h"

namespace isonorm {

void start_cuda() { check(false, "cuda: this library was built without it"); }

}  // namespace isonorm
