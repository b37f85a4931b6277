// An accepted tensor must have a stride for each size, and no negative size or stride.
#include "io/torch_file.h"

#include "tests/fuzz/fuzz.h"

using namespace isonorm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz(data, size, [&](const Bytes&) {
    for (const io::PickledTensor& t : io::read_pickle({reinterpret_cast<const char*>(data), size})) {
      require(t.entry.shape.rank == t.strides.rank && t.offset >= 0 && t.storage_numel >= 0);
      for (int i = 0; i < t.strides.rank; ++i) require(t.entry.shape[i] >= 0 && t.strides[i] >= 0);
    }
  });
}
