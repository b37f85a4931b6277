// An accepted tensor must fit the file: deflate compresses at most 1032 bytes into one.
#include "io/data/published_sets.h"
#include "tests/fuzz/fuzz.h"

using namespace isonorm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz(data, size, [](const Bytes& file) {
    const Tensor t = data::read_idx(file);
    require(t.dtype() == DType::u8 && t.numel() <= file.size * 1032);
  });
}
