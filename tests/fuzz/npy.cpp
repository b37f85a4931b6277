// What the reader accepts has as many bytes as the file holds behind its header.
#include "io/npy.h"
#include "tests/fuzz/fuzz.h"

using namespace isonorm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz(data, size, [](const Bytes& file) {
    const Tensor t = load_npy(file);
    require(t.numel() * size_of(t.dtype()) < file.size);
  });
}
