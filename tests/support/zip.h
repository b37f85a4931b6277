// Writes zip archives of .npy members as NumPy does, for tests.
#pragma once

#include <string>
#include <vector>

#include "autograd/ops/shape.h"
#include "tests/support/gzip.h"

// One member. Fields that a test sets are written as they are; the others follow from `bytes`.
struct ZipMember {
  std::string name, bytes;
  int method = 8;                              // 0: stored, 8: deflated
  uint32_t flags = 0;                          // 1: encrypted
  int64_t size = -1, packed = -1, place = -1;  // -1: the true value
  uint32_t crc_flip = 0;
  bool wide = false;  // the directory also has sizes and offset in a zip64 field
};

inline std::string little(uint64_t n, int bytes) {
  std::string s;
  for (int i = 0; i < bytes; ++i, n >>= 8) s += static_cast<char>(n);
  return s;
}

// Raw deflate without zlib's header, as zip requires.
inline std::string deflated(const std::string& bytes) {
  return deflated<std::string>({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, -15);
}

// Local headers store their sizes in a zip64 record and 0xffffffff in the size fields, like numpy.savez.
inline std::string zip(const std::vector<ZipMember>& members, const std::string& comment = "") {
  std::string file, directory;
  for (const ZipMember& m : members) {
    const std::string data = m.method == 8 ? deflated(m.bytes) : m.bytes;
    const auto or_true = [](int64_t said, size_t is) { return said < 0 ? is : static_cast<uint64_t>(said); };
    const uint64_t packed = or_true(m.packed, data.size()), size = or_true(m.size, m.bytes.size());
    const uint64_t place = or_true(m.place, file.size());
    const uint64_t crc = crc32_z(0, reinterpret_cast<const Bytef*>(m.bytes.data()), m.bytes.size()) ^ m.crc_flip;
    const std::string method = little(static_cast<uint64_t>(m.method), 2), stamp = little(0, 4), sum = little(crc, 4);
    file += "PK\3\4" + little(45, 2) + little(m.flags, 2) + method + stamp + sum + little(0xffffffffffffffff, 8) +
            little(m.name.size(), 2) + little(20, 2) + m.name + little(1, 2) + little(16, 2) + little(size, 8) +
            little(packed, 8) + data;
    const auto narrow = [&](uint64_t n) { return little(m.wide ? 0xffffffff : n, 4); };
    const std::string field = little(1, 2) + little(24, 2) + little(size, 8) + little(packed, 8) + little(place, 8);
    directory += "PK\1\2" + little(45, 2) + little(45, 2) + little(m.flags, 2) + method + stamp + sum + narrow(packed) +
                 narrow(size) + little(m.name.size(), 2) + little(m.wide ? field.size() : 0, 2) + little(0, 10) +
                 narrow(place) + m.name + (m.wide ? field : "");
  }
  const std::string count = little(members.size(), 2);
  const uint64_t begin = file.size();
  return file + directory + "PK\5\6" + little(0, 4) + count + count + little(directory.size(), 4) + little(begin, 4) +
         little(comment.size(), 2) + comment;
}

// A tensor as a .npy file, f32, f64 or i64.
inline std::string npy_bytes(const isonorm::Tensor& tensor) {
  using isonorm::DType;
  const isonorm::Tensor t = isonorm::contiguous(tensor);
  std::string shape;
  for (int64_t size : t.shape()) shape += isonorm::text(size, ",");
  const char* type = t.dtype() == DType::f32 ? "<f4" : t.dtype() == DType::f64 ? "<f8" : "<i8";
  const std::string header = isonorm::text("{'descr': '", type, "', 'fortran_order': False, 'shape': (", shape, ")}\n");
  std::string out = isonorm::text("\x93NUMPY\1", little(0, 1), little(header.size(), 2), header);
  isonorm::visit_all(t.dtype(), [&]<class T>() {
    out.append(reinterpret_cast<const char*>(t.data<T>()), static_cast<size_t>(t.numel()) * sizeof(T));
  });
  return out;
}
