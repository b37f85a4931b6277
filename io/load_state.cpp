#include "io/load_state.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "core/error.h"
#include "core/system/foreign_text.h"
#include "io/fits.h"
#include "io/half.h"
#include "io/lazy_state.h"
#include "io/npy.h"
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

namespace isonorm::io {

namespace {

// E4M3 has no infinity. NaN is the value with all bits but the sign set.
float of_e4m3(uint8_t b) {
  const int exponent = b >> 3 & 15, fraction = b & 7;
  if ((b & 127) == 127) return std::numeric_limits<float>::quiet_NaN();
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -9)
                                   : std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
  return b & 128 ? -size : size;
}

// E5M2 is the upper byte of a binary16.
float of_e5m2(uint8_t b) {
  const int exponent = b >> 2 & 31, fraction = b & 3;
  float size = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -16)
                             : std::ldexp(static_cast<float>(4 + fraction), exponent - 17);
  if (exponent == 31)
    size = fraction == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  return b & 128 ? -size : size;
}

// A power of two, 2^(b - 127), or NaN.
float of_e8m0(uint8_t b) { return b == 255 ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0F, b - 127); }

struct ForeignNumbers {
  std::string_view type;
  int bytes;
  DType dtype;
  bool negative = false;             // two's complement integers
  float (*real)(uint8_t) = nullptr;  // conversion, for float types
};
constexpr ForeignNumbers kForeignNumbers[] = {{"BOOL", 1, DType::i64},
                                              {"I8", 1, DType::i64, true},
                                              {"I16", 2, DType::i64, true},
                                              {"U16", 2, DType::i64},
                                              {"I32", 4, DType::i64, true},
                                              {"U32", 4, DType::i64},
                                              {"F8_E4M3", 1, DType::f32, false, of_e4m3},
                                              {"F8_E5M2", 1, DType::f32, false, of_e5m2},
                                              {"F8_E8M0", 1, DType::f32, false, of_e8m0}};

const ForeignNumbers* known(const std::string& type) {
  for (const ForeignNumbers& n : kForeignNumbers)
    if (n.type == type) return &n;
  return nullptr;
}

Dims shape_of_numbers(Dims bytes, int of_element) {
  if (of_element > 1) --bytes.rank;
  return bytes;
}

}  // namespace

Tensor numbers_of(const Tensor& bytes, const std::string& type) {
  const ForeignNumbers* n = known(type);
  if (!n) return bytes;
  const Tensor x = empty(shape_of_numbers(bytes.shape(), n->bytes), {n->dtype});
  const uint8_t* from = bytes.data<uint8_t>();
  for (int64_t i = 0; i < x.numel(); ++i, from += n->bytes) {
    if (n->real) {
      x.mutable_data<float>()[i] = n->real(*from);
      continue;
    }
    uint64_t bits = 0;
    for (int k = 0; k < n->bytes; ++k) bits |= uint64_t{from[k]} << (8 * k);
    const auto value = static_cast<int64_t>(bits), span = int64_t{1} << (8 * n->bytes);
    x.mutable_data<int64_t>()[i] = n->negative && value >= span / 2 ? value - span : value;
  }
  return x;
}

Tensor outline_of_numbers(const Tensor& bytes, const std::string& type) {
  const ForeignNumbers* n = known(type);
  return n ? outline(shape_of_numbers(bytes.shape(), n->bytes), n->dtype) : bytes;
}

}  // namespace isonorm::io
