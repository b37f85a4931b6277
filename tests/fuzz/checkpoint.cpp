// An accepted file is a checkpoint with a correct checksum, so nothing else is checked.
#include "io/checkpoint.h"
#include "tests/fuzz/fuzz.h"

using namespace isonorm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz(data, size, [](const Bytes& file) { load_checkpoint(file); });
}
