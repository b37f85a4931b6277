// Tensors of an accepted file must lie in the file, and none may be larger than the file.
#include "io/torch_file.h"
#include "tests/fuzz/fuzz.h"

using namespace isonorm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz(data, size, [](const Bytes& file) {
    const io::TorchFile read(file);
    for (const io::TensorEntry& e : read.entries()) {
      require(0 <= e.begin && e.begin <= e.end && e.end <= file.size);
      const Tensor t = read.read(e);
      require(t.shape() == e.shape && t.dtype() == e.dtype && t.is_contiguous());
      require(t.numel() * size_of(t.dtype()) <= file.size);
    }
  });
}
