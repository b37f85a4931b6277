#include "io/npz.h"

#include <algorithm>
#include <cstring>

#include "io/npy.h"
#include "io/zip.h"

namespace isonorm {

TensorMap load_npz(const Bytes& file) {
  const Scope scope(file.name);
  TensorMap tensors;
  for (const io::ZipMember& m : io::zip_members(file)) {
    const Scope member(m.name);
    check(m.name.ends_with(".npy"), "npz: expected members that are called NAME.npy");
    tensors.add(m.name.substr(0, m.name.size() - 4), load_npy(memory_bytes(io::unzipped(file, m), "")));
  }
  return tensors;
}

TensorMap load_npz(const std::string& path) { return load_npz(open_bytes(path)); }

bool is_zip(const Bytes& file) {
  uint8_t head[4] = {};
  file.read(0, head, std::min<int64_t>(file.size, 4));
  // PK\5\6 begins an archive without members.
  return std::memcmp(head, "PK\3\4", 4) == 0 || std::memcmp(head, "PK\5\6", 4) == 0;
}

}  // namespace isonorm
