#include "io/npy.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/system/foreign_text.h"
#include "core/view.h"
#include "io/fits.h"
#include "io/packed.h"
#include "io/replacement.h"
#include "io/zip.h"

namespace isonorm {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr int64_t kHeaderLimit = 1 << 16;  // headers written by NumPy are below 200 bytes

constexpr struct {
  std::string_view descr;
  DType dtype;
} kTypes[] = {{"<f4", DType::f32}, {"<f8", DType::f64}, {"<i8", DType::i64}, {"|u1", DType::u8}};

struct Header {
  DType dtype = DType::f32;
  bool fortran = false;  // column-major: the first axis varies fastest
  Dims shape;
};

// Reads the header, a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : text_(text) {}

  Header read() {
    expect("{");
    while (!accept("}")) {
      const std::string_view key = quoted();
      expect(":");
      value(key);
      if (accept(",")) continue;
      expect("}");
      break;
    }
    accept("");  // skips white space
    check(at_ == text_.size(), "npy: the header has text after its end, at byte ", at_);
    check(descr_ && order_ && shape_, "npy: the header has no ",
          !descr_   ? "descr"
          : !order_ ? "fortran_order"
                    : "shape");
    return header_;
  }

 private:
  void value(std::string_view key) {
    bool* seen = key == "descr" ? &descr_ : key == "fortran_order" ? &order_ : key == "shape" ? &shape_ : nullptr;
    check(seen != nullptr, "npy: the header has a key other than descr, fortran_order and shape at byte ", at_);
    check(!*seen, "npy: the header has ", key, " twice");
    *seen = true;
    if (key == "descr") {
      dtype(quoted());
    } else if (key == "shape") {
      shape();
    } else {
      header_.fortran = accept("True");
      if (!header_.fortran) expect("False");
    }
  }
  void dtype(std::string_view descr) {
    for (const auto& t : kTypes)
      if (t.descr == descr) {
        header_.dtype = t.dtype;
        return;
      }
    check(false, "npy: the type is ", Shown{descr}, ", expected <f4, <f8, <i8 or |u1");
  }
  void shape() {
    expect("(");
    if (accept(")")) return;
    for (;;) {
      check(header_.shape.rank < kMaxRank, "npy: more than ", kMaxRank, " dimensions");
      header_.shape.push_back(integer());
      const bool comma = accept(",");
      if (accept(")")) {
        check(comma || header_.shape.rank > 1, "npy: a shape with one size has no comma, expected (3,)");
        return;
      }
      check(comma, "npy: expected , or ) at byte ", at_, " of the header");
    }
  }
  int64_t integer() {
    accept("");
    const size_t begin = at_;
    int64_t n = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      n = checked_add(checked_mul(n, 10, "npy: size"), text_[at_] - '0', "npy: size");
    check(at_ > begin && (text_[begin] != '0' || at_ == begin + 1), "npy: expected a size at byte ", begin,
          " of the header");
    return n;
  }
  std::string_view quoted() {
    expect("'");
    const size_t begin = at_;
    at_ = text_.find('\'', begin);
    if (at_ == std::string_view::npos) at_ = text_.size();
    const std::string_view s = text_.substr(begin, at_ - begin);
    for (char c : s) check(c >= 0x20 && c < 0x7f, "npy: the header has byte ", static_cast<uint8_t>(c), " in a string");
    check(at_ < text_.size(), "npy: the header ends inside of a string");
    ++at_;
    return s;
  }
  bool accept(std::string_view token) {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    const bool there = accept(token);
    check(there, "npy: expected ", token, " at byte ", at_, " of the header");
  }

  std::string_view text_;
  size_t at_ = 0;
  bool descr_ = false, order_ = false, shape_ = false;
  Header header_;
};

}  // namespace

Tensor load_npy(const Bytes& file) {
  const Scope scope(file.name);
  uint8_t head[12] = {};  // magic, version, length of the header in 2 or 4 bytes
  check(file.size >= 10, "npy: ", file.size, " bytes, shorter than a header");
  file.read(0, head, 10);
  check(std::memcmp(head, kMagic.data(), kMagic.size()) == 0, "npy: the file does not begin with \\x93NUMPY");
  check((head[6] == 1 || head[6] == 2) && head[7] == 0, "npy: version ", head[6], ".", head[7],
        ", expected 1.0 or 2.0");
  const int64_t begin = head[6] == 1 ? 10 : 12;
  check(file.size >= begin, "npy: ", file.size, " bytes, shorter than a header");
  file.read(8, head + 8, begin - 8);
  const int64_t length = head[8] | int64_t{head[9]} << 8 | int64_t{head[10]} << 16 | int64_t{head[11]} << 24;
  check(length <= kHeaderLimit, "npy: the header has ", length, " bytes, over the limit of ", kHeaderLimit);
  check(length <= file.size - begin, "npy: the header has ", length, " bytes, the file ", file.size);
  std::string text(static_cast<size_t>(length), '\0');
  file.read(begin, text.data(), length);
  const Header header = HeaderReader(text).read();
  const int64_t bytes = checked_mul(numel(header.shape), size_of(header.dtype), "npy: size");
  const int64_t data = file.size - begin - length;
  check(bytes == data, "npy: shape ", header.shape, " and dtype ", header.dtype, " take ", bytes,
        " bytes, the file has ", data);
  io::check_fits(bytes, "npy: the array");
  Dims stored = header.shape;
  std::vector<int> axes(static_cast<size_t>(stored.rank));
  std::iota(axes.rbegin(), axes.rend(), 0);
  if (header.fortran)
    for (int i = 0; i < stored.rank; ++i) stored[i] = header.shape[axes[static_cast<size_t>(i)]];
  Tensor t = empty(stored, {header.dtype});
  file.read(begin + length, mutable_bytes_of(t), bytes);
  return header.fortran ? detached::contiguous(detached::permute(t, axes)) : t;
}

Tensor load_npy(const std::string& path) { return load_npy(open_bytes(path)); }

void save_npy(const std::string& path, const Tensor& tensor) {
  std::string_view descr;
  for (const auto& t : kTypes)
    if (t.dtype == tensor.dtype()) descr = t.descr;
  check(!descr.empty(), path, ": npy: NumPy has no type for ", tensor.dtype(), ", convert the tensor first");
  std::string shape;
  for (int64_t s : tensor.shape()) shape += text(shape.empty() ? "" : " ", s, ",");
  if (tensor.rank() > 1) shape.pop_back();
  std::string header = text("{'descr': '", descr, "', 'fortran_order': False, 'shape': (", shape, "), }");
  header.append(63 - (10 + header.size()) % 64, ' ');  // the data begin at a multiple of 64 bytes
  header += '\n';
  std::string head(kMagic);
  head += {'\1', '\0', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  const Tensor t = io::packed(tensor);
  io::Replacement file(path);
  file.write(head);
  file.write(header);
  file.write(bytes_of(t), byte_size(t));
  file.commit();
}

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
