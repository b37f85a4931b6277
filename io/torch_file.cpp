#include "io/torch_file.h"

#include "core/system/foreign_text.h"
#include "io/fits.h"
#include "io/packed.h"
#include "io/safetensors.h"
#include "io/zip.h"

namespace isonorm::io {
namespace {

constexpr int64_t kPickleLimit = int64_t{1} << 26;

// The members of an archive by their names without the leading folder.
class Archive {
 public:
  explicit Archive(const Bytes& file) : file_(file) {
    uint8_t first = 0;
    if (file.size > 0) file.read(0, &first, 1);
    check(first != 0x80,
          "this is a bare pickle, as torch.save wrote before PyTorch 1.6; load it there and save it again");
    for (ZipMember& m : zip_members(file)) {
      const std::string name = m.name.substr(m.name.find('/') + 1);
      if (members_.empty()) root_ = m.name.substr(0, m.name.size() - name.size());
      check(m.name == root_ + name && root_.size() > 1, "the members ", Shown{root_}, " and ", Shown{m.name},
            " are not in one folder, as torch.save writes");
      check(!m.deflated, Shown{m.name}, " is deflated, expected it stored, as torch.save writes");
      check(members_.emplace(name, std::move(m)).second, "the member ", Shown{root_ + name}, " is there twice");
    }
  }

  const ZipMember* find(const std::string& name) const {
    const auto at = members_.find(name);
    return at == members_.end() ? nullptr : &at->second;
  }
  const ZipMember& at(const std::string& name) const {
    const ZipMember* m = find(name);
    check(m != nullptr, "there is no member ", Shown{root_ + name}, ", which a file of torch.save has");
    return *m;
  }
  std::vector<uint8_t> bytes_of(const ZipMember& m) const {
    check(m.size <= kPickleLimit, Shown{m.name}, " has ", m.size, " bytes, over the limit of ", kPickleLimit);
    const Scope scope(m.name);
    return unzipped(file_, m);
  }

 private:
  const Bytes& file_;
  std::string root_;
  std::map<std::string, ZipMember> members_;
};

// Number of elements from the first to the last, gaps included.
int64_t span_of(const PickledTensor& t) {
  const Dims& shape = t.entry.shape;
  if (numel(shape) == 0) return 0;
  int64_t span = 1;
  for (int i = 0; i < shape.rank; ++i)
    span = checked_add(span, checked_mul(shape[i] - 1, t.strides[i], "strides"), "strides");
  return span;
}

bool is_contiguous(const PickledTensor& t) {
  const Dims &shape = t.entry.shape, expected = contiguous_strides(shape);
  for (int i = 0; i < shape.rank; ++i)
    if (shape[i] != 1 && t.strides[i] != expected[i]) return numel(shape) == 0;
  return true;
}

}  // namespace

TorchFile::TorchFile(Bytes file) : file_(std::move(file)) {
  const Scope scope(file_.name);
  const Archive archive(file_);
  if (const ZipMember* order = archive.find("byteorder")) {
    const std::vector<uint8_t> said = archive.bytes_of(*order);
    check(std::string(said.begin(), said.end()) == "little", "its numbers are not little-endian");
  }
  const std::vector<uint8_t> pickle = archive.bytes_of(archive.at("data.pkl"));
  for (PickledTensor& t : read_pickle({reinterpret_cast<const char*>(pickle.data()), pickle.size()})) {
    TensorEntry& e = t.entry;
    const std::string name = text(Shown{e.name});
    const Scope tensor(name);
    const ZipMember& storage = archive.at("data/" + t.storage);
    const int64_t bytes = element_size(e);
    check(storage.size == checked_mul(t.storage_numel, bytes, "storage"), "its storage ", Shown{t.storage}, " has ",
          storage.size, " bytes, expected ", t.storage_numel, " elements of ", bytes);
    const int64_t span = span_of(t);
    check(numel(e.shape) <= t.storage_numel && span <= t.storage_numel - t.offset, "shape ", e.shape, " with strides ",
          t.strides, " from element ", t.offset, " does not fit a storage of ", t.storage_numel, " elements");
    e.begin = storage.begin + t.offset * bytes, e.end = e.begin + span * bytes;
    const int64_t parts = e.foreign.empty() ? 1 : bytes;  // 1, or the size of the added axis of bytes
    if (!is_contiguous(t)) {
      for (int i = 0; i < e.shape.rank; ++i) t.strides[i] = e.shape[i] == 1 ? 0 : t.strides[i] * parts;
      if (parts > 1) t.strides.push_back(1);
      strides_[e.name] = t.strides;
    }
    if (parts > 1) e.shape.push_back(parts);
    entries_.push_back(std::move(e));
  }
}

Tensor TorchFile::read(const TensorEntry& e) const {
  const Scope scope(file_.name);
  check_fits(e.end - e.begin, "tensor '" + e.name + "'");
  const auto strides = strides_.find(e.name);
  const bool whole = strides == strides_.end();
  const Tensor t = empty(whole ? e.shape : Dims{(e.end - e.begin) / size_of(e.dtype)}, {e.dtype});
  file_.read(e.begin, mutable_bytes_of(t), e.end - e.begin);
  return whole ? t : packed(as_strided(t, e.shape, strides->second, 0));
}

}  // namespace isonorm::io
