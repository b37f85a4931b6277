#include "io/flax_file.h"

#include <algorithm>
#include <set>

#include "core/memory/bytes.h"
#include "core/system/foreign_text.h"
#include "io/fits.h"
#include "io/safetensors.h"

namespace isonorm::io {
namespace {

constexpr int kDepth = 32;
constexpr int64_t kKeysLimit = int64_t{1} << 26;  // bytes of all keys and paths, with kHeld bytes of overhead for each
constexpr int64_t kHeld = 128;
constexpr std::string_view kChunked = "__msgpack_chunked_array__";

constexpr struct {
  std::string_view name;  // NumPy's name
  DType dtype;
  std::string_view foreign = {};
} kFlaxTypes[] = {{"float32", DType::f32},     {"float64", DType::f64},      {"bfloat16", DType::bf16},
                  {"int64", DType::i64},       {"uint8", DType::u8},         {"float16", DType::u8, "F16"},
                  {"int32", DType::u8, "I32"}, {"int16", DType::u8, "I16"},  {"int8", DType::u8, "I8"},
                  {"bool", DType::u8, "BOOL"}, {"uint16", DType::u8, "U16"}, {"uint32", DType::u8, "U32"},
                  {"uint64", DType::u8, "U64"}};

enum class Kind { number, truth, text, bytes, list, map, extension, other };
constexpr const char* kKindNames[] = {"a number", "a truth value", "a string",     "bytes",
                                      "a list",   "a map",         "an extension", "another value"};

// The first bytes of a value, decoded.
struct Head {
  Kind kind = Kind::other;
  uint64_t n = 0;          // the number itself, or the size of the value
  uint64_t extension = 0;  // type code of an extension
};

class TreeReader {
 public:
  explicit TreeReader(const Bytes& file) : file_(file) {}

  std::vector<TensorEntry> entries;
  std::map<std::string, std::vector<FlaxFile::Piece>> pieces;

  void run() {
    read_map("", expected(Kind::map, "the file"), 1);
    check(at_ == file_.size, "flax: ", file_.size - at_, " bytes after its end");
  }

 private:
  uint8_t byte() {
    check(at_ < file_.size, "flax: byte ", at_, ": it ends inside of a value");
    if (at_ >= window_begin_ + window_size_) {
      window_begin_ = at_, window_size_ = std::min<int64_t>(file_.size - at_, sizeof window_);
      file_.read(at_, window_, window_size_);
    }
    return window_[at_++ - window_begin_];
  }
  uint64_t number(int bytes) {
    uint64_t n = 0;
    for (; bytes > 0; --bytes) n = n << 8 | byte();
    return n;
  }
  void check_left(uint64_t n) const {
    check(n <= static_cast<uint64_t>(file_.size - at_), "flax: byte ", at_, ": it ends inside of a value of ", n,
          " bytes");
  }

  // Negative numbers, floats and nil are Kind::other: these files have none.
  Head head() {
    const uint8_t b = byte();
    const auto sized = [&](Kind kind, int first) { return Head{kind, number(1 << (b - first))}; };
    if (b < 0x80) return {Kind::number, b};
    if (b < 0x90) return {Kind::map, b & uint64_t{15}};
    if (b < 0xa0) return {Kind::list, b & uint64_t{15}};
    if (b < 0xc0) return {Kind::text, b & uint64_t{31}};
    if (b == 0xc2 || b == 0xc3) return {Kind::truth};
    if (b >= 0xc4 && b <= 0xc6) return sized(Kind::bytes, 0xc4);
    if (b >= 0xcc && b <= 0xcf) return sized(Kind::number, 0xcc);
    if (b >= 0xd9 && b <= 0xdb) return sized(Kind::text, 0xd9);
    if (b == 0xdc || b == 0xdd) return sized(Kind::list, 0xdb);
    if (b == 0xde || b == 0xdf) return sized(Kind::map, 0xdd);
    Head extension{Kind::extension};
    if (b >= 0xc7 && b <= 0xc9)
      extension.n = number(1 << (b - 0xc7));
    else if (b >= 0xd4 && b <= 0xd8)
      extension.n = uint64_t{1} << (b - 0xd4);
    else
      return {};
    extension.extension = number(1);
    return extension;
  }
  // Reads a head that must be of `kind`, and returns its size or number.
  uint64_t expected(Kind kind, const char* what) {
    const int64_t at = at_;
    const Head h = head();
    check(h.kind == kind, "flax: byte ", at, ": ", what, " is ", kKindNames[static_cast<int>(h.kind)], ", expected ",
          kKindNames[static_cast<int>(kind)]);
    return h.n;
  }
  std::string string(const char* what) {
    const uint64_t n = expected(Kind::text, what);
    check_left(n);
    hold(n);
    std::string s;
    while (s.size() < n) s += static_cast<char>(byte());
    return s;
  }

  void hold(uint64_t bytes) {
    held_ += kHeld + static_cast<int64_t>(bytes);
    check(held_ <= kKeysLimit, "flax: byte ", at_, ": keys and paths take more than ", kKeysLimit, " bytes");
  }

  // Reads a map of `n` keys. A map that describes an array in chunks becomes one tensor.
  void read_map(const std::string& path, uint64_t n, int depth) {
    check(depth <= kDepth, "flax: byte ", at_, ": maps are nested deeper than ", kDepth);
    for (uint64_t i = 0; i < n; ++i) {
      const std::string key = string("a key");
      if (key == kChunked) {
        check(i == 0 && n == 3 && depth > 1, "flax: byte ", at_, ": ", Shown{path},
              " has more than an array in chunks");
        return read_chunked(path);
      }
      hold(path.size());
      const std::string name = depth == 1 ? key : path + '.' + key;
      check(names_.insert(name).second, "flax: byte ", at_, ": ", Shown{name}, " is there twice");
      const int64_t at = at_;
      const Head h = head();
      if (h.kind == Kind::map) {
        read_map(name, h.n, depth + 1);
        continue;
      }
      check(h.kind == Kind::extension, "flax: byte ", at, ": ", Shown{name}, " is ",
            kKindNames[static_cast<int>(h.kind)], ", expected a map or an array");
      add_entry(array(h, name));
    }
  }

  int64_t dimension() {
    const uint64_t n = expected(Kind::number, "a size");
    check(n <= uint64_t{INT64_MAX}, "flax: byte ", at_, ": a size is ", n);
    return static_cast<int64_t>(n);
  }
  static int64_t size_in_bytes(const TensorEntry& e) { return checked_mul(numel(e.shape), element_size(e), "size"); }
  void check_rank(uint64_t rank) const {
    check(rank <= kMaxRank, "flax: byte ", at_, ": ", rank, " dimensions, expected at most ", kMaxRank);
  }

  // Reads the shape, dtype and byte range of an array. With a foreign dtype the shape has no axis of bytes yet.
  TensorEntry array(const Head& h, const std::string& name) {
    const std::string shown = text(Shown{name});
    const Scope scope(shown);
    check(h.extension == 1 || h.extension == 3, "flax: byte ", at_, ": an extension of type ", h.extension,
          ", expected an array, 1 or 3");
    check_left(h.n);
    const int64_t end = at_ + static_cast<int64_t>(h.n);
    TensorEntry e{.name = name, .shape = {}};
    const uint64_t parts = expected(Kind::list, "an array");
    check(parts == 3, "flax: byte ", at_, ": an array has ", parts, " parts, expected 3");
    const uint64_t rank = expected(Kind::list, "a shape");
    check_rank(rank);
    for (uint64_t i = 0; i < rank; ++i) e.shape.push_back(dimension());
    const std::string type = string("a dtype");
    const auto* known = std::ranges::find(kFlaxTypes, type, [](const auto& t) { return t.name; });
    check(known != std::end(kFlaxTypes), "flax: byte ", at_, ": the dtype is ", Shown{type}, ", which is not read");
    e.dtype = known->dtype, e.foreign = known->foreign;
    const uint64_t bytes = expected(Kind::bytes, "what an array holds");
    const int64_t size = size_in_bytes(e);
    check(bytes == static_cast<uint64_t>(size) && at_ <= end && end - at_ == size, "flax: byte ", at_, ": shape ",
          e.shape, " of ", type, " takes ", size, " bytes, there are ", bytes, " in a value that has ", end - at_);
    e.begin = at_, e.end = at_ = end;
    return e;
  }

  // {kChunked: true, "shape": {"0": 2, "1": 3}, "chunks": {"0": array, "1": array}}
  void read_chunked(const std::string& path) {
    const std::string shown = text(Shown{path});
    const Scope scope(shown);
    expected(Kind::truth, "a mark of chunks");
    const auto part = [&](const std::string& key) {
      const std::string found = string("a key");
      check(found == key, "flax: byte ", at_, ": ", Shown{found}, " in an array in chunks, expected ", Shown{key});
    };
    part("shape");
    TensorEntry whole{.name = path, .shape = {}};
    const uint64_t rank = expected(Kind::map, "a shape");
    check_rank(rank);
    for (uint64_t i = 0; i < rank; ++i) part(text(i)), whole.shape.push_back(dimension());
    part("chunks");
    const uint64_t n = expected(Kind::map, "what holds the chunks");
    check(n > 0, "flax: byte ", at_, ": an array of no chunks");
    int64_t size = 0;
    for (uint64_t i = 0; i < n; ++i) {
      part(text(i));
      const int64_t at = at_;
      const Head h = head();
      check(h.kind == Kind::extension, "flax: byte ", at, ": a chunk is ", kKindNames[static_cast<int>(h.kind)],
            ", expected an array");
      const TensorEntry e = array(h, path);
      if (i == 0) whole.dtype = e.dtype, whole.foreign = e.foreign, whole.begin = e.begin;
      check(e.dtype == whole.dtype && e.foreign == whole.foreign, "flax: byte ", at, ": chunks are of two dtypes");
      pieces[path].push_back({e.begin, e.end - e.begin});
      size += e.end - e.begin, whole.end = e.end;
    }
    check(size == size_in_bytes(whole), "flax: byte ", at_, ": shape ", whole.shape, " takes ", size_in_bytes(whole),
          " bytes, its chunks have ", size);
    add_entry(std::move(whole));
  }

  // Appends an axis of bytes to the shape if elements are held as several bytes.
  void add_entry(TensorEntry e) {
    if (const int64_t parts = element_size(e); !e.foreign.empty() && parts > 1) {
      check(e.shape.rank < kMaxRank, "flax: ", Shown{e.name}, " of ", e.foreign, " has ", kMaxRank,
            " dimensions, expected fewer");
      e.shape.push_back(parts);
    }
    entries.push_back(std::move(e));
  }

  const Bytes& file_;
  int64_t at_ = 0, held_ = 0;
  uint8_t window_[4096];
  int64_t window_begin_ = 0, window_size_ = 0;
  std::set<std::string> names_;
};

}  // namespace

FlaxFile::FlaxFile(Bytes file) : file_(std::move(file)) {
  const Scope scope(file_.name);
  TreeReader reader(file_);
  reader.run();
  entries_ = std::move(reader.entries), pieces_ = std::move(reader.pieces);
}

Tensor FlaxFile::read(const TensorEntry& e) const {
  const Scope scope(file_.name);
  check_fits(e.end - e.begin, "tensor '" + e.name + "'");
  const Tensor t = empty(e.shape, {e.dtype});
  const auto pieces = pieces_.find(e.name);
  if (pieces == pieces_.end()) {
    file_.read(e.begin, mutable_bytes_of(t), e.end - e.begin);
    return t;
  }
  int64_t at = 0;
  for (const Piece& p : pieces->second) {
    file_.read(p.begin, mutable_bytes_of(t) + at, p.size);
    at += p.size;
  }
  return t;
}

}  // namespace isonorm::io
