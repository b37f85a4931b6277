#include "io/load_state.h"

#include <algorithm>

#include "core/error.h"
#include "core/system/foreign_text.h"
#include "io/fits.h"
#include "io/foreign_numbers.h"
#include "io/half.h"
#include "io/npz.h"
#include "io/torch_file.h"
#include "io/zip.h"

namespace isonorm {
namespace {

// Throws if a tensor has a dtype that cannot be converted, or if the tensors do not fit into memory.
template <class File> void check_numbers(const File& file) {
  const Scope scope(file.name());
  int64_t bytes = 0;
  for (const io::TensorEntry& e : file.entries()) {
    check(e.foreign != "U64" && e.foreign != "C64", "tensor ", Shown{e.name}, " is of ", e.foreign,
          ", which no dtype holds");
    bytes += e.end - e.begin;
  }
  io::check_fits(bytes, "the whole");
}

template <class File> TensorMap all_numbers(const File& file) {
  check_numbers(file);
  TensorMap tensors;
  tensors.set_torch(file.is_torch());
  for (const io::TensorEntry& e : file.entries())
    tensors.add(e.name, io::numbers_of(io::held(e, file.read(e)), e.foreign));
  return tensors;
}

bool is_torch(const Bytes& file) {
  return std::ranges::any_of(io::zip_members(file),
                             [](const io::ZipMember& m) { return m.name.ends_with("/data.pkl"); });
}

}  // namespace

TensorMap load_state(const std::string& path) {
  const Bytes file = open_bytes(path);
  if (!is_zip(file)) return all_numbers(SafetensorsFile(file));
  if (is_torch(file)) return all_numbers(io::TorchFile(file));
  return load_npz(file);
}

}  // namespace isonorm
