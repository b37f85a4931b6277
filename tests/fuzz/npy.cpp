// An accepted tensor must not have more bytes than the file.
#include "io/npy.h"
#include "tests/fuzz/fuzz.h"

using namespace isonorm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz(data, size, [](const Bytes& file) {
    const Tensor t = load_npy(file);
    require(t.numel() * size_of(t.dtype()) < file.size);
  });
}
