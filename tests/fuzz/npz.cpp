// Accepted tensors must not have more bytes than deflate can compress into the file.
#include "io/npy.h"
#include "tests/fuzz/fuzz.h"

using namespace isonorm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz(data, size, [](const Bytes& file) {
    int64_t bytes = 0;
    for (const auto& [name, tensor] : load_npz(file)) bytes += tensor.numel() * size_of(tensor.dtype());
    require(bytes <= file.size * 1032);
  });
}
