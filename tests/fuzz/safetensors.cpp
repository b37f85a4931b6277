// The entries of an accepted file, written to a header and read again, must be the same.
#include "io/safetensors.h"
#include "tests/fuzz/fuzz.h"

using namespace isonorm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz(data, size, [](const Bytes& file) {
    const SafetensorsFile read(file);
    io::SafetensorsHeader header{read.entries(), read.metadata()};
    int64_t end = 0;
    for (io::TensorEntry& e : header.entries) {
      const Tensor t = read.read(e);
      require(t.shape() == e.shape && t.dtype() == e.dtype);
      e.begin = end;
      e.end = end += t.numel() * size_of(t.dtype());
    }
    const io::SafetensorsHeader again = io::parse_safetensors_header(io::format_safetensors_header(header), end);
    require(again.metadata == header.metadata);
    require(again.entries.size() == header.entries.size());
    for (size_t i = 0; i < again.entries.size(); ++i) {
      const io::TensorEntry &a = again.entries[i], &b = header.entries[i];
      require(a.name == b.name && a.dtype == b.dtype && a.shape == b.shape && a.begin == b.begin && a.end == b.end &&
              a.foreign == b.foreign);
    }
  });
}
