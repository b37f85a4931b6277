#include "io/npz.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "io/npy.h"

namespace isonorm {
namespace {

constexpr int64_t kEndSize = 22, kEntrySize = 46, kLocalSize = 30, kCommentLimit = 0xffff;
constexpr uint32_t kEndSign = 0x06054b50, kEntrySign = 0x02014b50, kLocalSign = 0x04034b50;
constexpr uint32_t kWide = 0xffffffff;  // stands where the number is in a zip64 record
constexpr int kStored = 0, kDeflated = 8;
constexpr int64_t kMostPerByte = 1032;  // deflate packs at most 258 bytes into 2 bits

uint32_t number(const uint8_t* at, int bytes) {
  uint32_t n = 0;
  for (int i = 0; i < bytes; ++i) n |= uint32_t{at[i]} << (8 * i);
  return n;
}

struct Member {
  std::string name;
  uint32_t method = 0, crc = 0;
  int64_t packed = 0, size = 0, place = 0;  // in bytes; place: of its local header
};

struct Directory {
  int64_t begin = 0, size = 0, members = 0;
};

// The end record is the last thing in the file, but for a comment.
Directory find_directory(const Bytes& file) {
  const int64_t tail = std::min(file.size, kEndSize + kCommentLimit);
  std::vector<uint8_t> bytes(static_cast<size_t>(tail));
  file.read(file.size - tail, bytes.data(), tail);
  for (int64_t at = tail - kEndSize; at >= 0; --at) {
    const uint8_t* p = bytes.data() + at;
    if (number(p, 4) != kEndSign || number(p + 20, 2) != tail - kEndSize - at) continue;
    check(number(p + 4, 2) == 0 && number(p + 6, 2) == 0 && number(p + 8, 2) == number(p + 10, 2),
          "npz: one disk of several, expected a whole archive");
    const Directory d{number(p + 16, 4), number(p + 12, 4), number(p + 10, 2)};
    check(d.begin != kWide && d.size != kWide && d.members != 0xffff,
          "npz: a zip64 archive, expected less than 4 GiB in a file");
    check(d.begin + d.size == file.size - tail + at, "npz: the directory lies at byte ", d.begin, " and has ", d.size,
          " bytes, expected it to end at byte ", file.size - tail + at);
    return d;
  }
  check(false, "npz: no zip archive: the record that ends one is missing");
  return {};
}

std::vector<Member> read_directory(const Bytes& file, const Directory& d) {
  std::vector<uint8_t> bytes(static_cast<size_t>(d.size));  // lies in the file
  file.read(d.begin, bytes.data(), d.size);
  std::vector<Member> members;
  int64_t at = 0, packed = 0;
  for (int64_t i = 0; i < d.members; ++i) {
    const uint8_t* p = bytes.data() + at;
    check(d.size - at >= kEntrySize && number(p, 4) == kEntrySign, "npz: entry ", i, " of the directory is damaged");
    Member m{{}, number(p + 10, 2), number(p + 16, 4), number(p + 20, 4), number(p + 24, 4), number(p + 42, 4)};
    const int64_t name = number(p + 28, 2), rest = name + number(p + 30, 2) + number(p + 32, 2);
    check(rest <= d.size - at - kEntrySize, "npz: entry ", i, " of the directory leaves it");
    m.name.assign(reinterpret_cast<const char*>(p + kEntrySize), static_cast<size_t>(name));
    const Scope scope(m.name);
    check((number(p + 8, 2) & 1) == 0, "npz: the member is encrypted");
    check(m.packed != kWide && m.size != kWide && m.place != kWide, "npz: a zip64 member, expected less than 4 GiB");
    check(m.method == kStored || m.method == kDeflated, "npz: compressed by method ", m.method,
          ", expected 0 (stored) or 8 (deflated)");
    check(m.name.ends_with(".npy"), "npz: expected members that are called NAME.npy");
    packed += m.packed;
    check(packed <= d.begin, "npz: up to here the members have ", packed, " bytes, the file has ", d.begin,
          " for them");
    check(m.method == kStored ? m.size == m.packed : m.size <= m.packed * kMostPerByte, "npz: ", m.size,
          " bytes cannot come from ", m.packed, m.method == kStored ? " stored" : " deflated", " ones");
    members.push_back(std::move(m));
    at += kEntrySize + rest;
  }
  check(at == d.size, "npz: ", d.size - at, " bytes after the last entry of the directory");
  return members;
}

std::vector<uint8_t> inflated(const std::vector<uint8_t>& packed, int64_t size) {
  std::vector<uint8_t> out(static_cast<size_t>(size) + 1);  // one more: data that do not end there show
  z_stream z{};
  check(inflateInit2(&z, -15) == Z_OK, "npz: zlib cannot start");  // the largest window, no wrapper
  z.next_in = const_cast<Bytef*>(packed.data());
  z.avail_in = static_cast<uInt>(packed.size());
  z.next_out = out.data();
  z.avail_out = static_cast<uInt>(out.size());  // sizes are below 4 GiB
  const int status = inflate(&z, Z_FINISH);
  const auto written = static_cast<int64_t>(z.total_out);
  const bool whole = status == Z_STREAM_END && z.avail_in == 0;
  inflateEnd(&z);
  check(whole && written == size, "npz: damaged compression: ", written, " bytes, declared are ", size);
  out.pop_back();
  return out;
}

Tensor read_member(const Bytes& file, const Member& m, int64_t end) {
  const Scope scope(m.name);
  uint8_t head[kLocalSize];
  check(m.place <= end - kLocalSize, "npz: the member lies at byte ", m.place, ", the directory at byte ", end);
  file.read(m.place, head, kLocalSize);
  check(number(head, 4) == kLocalSign, "npz: there is no member at byte ", m.place);
  // Its sizes may be said behind it or in a zip64 record, whatever they are (NumPy does that): the directory's count.
  const int64_t begin = m.place + kLocalSize + number(head + 26, 2) + number(head + 28, 2);
  check(begin <= end && m.packed <= end - begin, "npz: ", m.packed, " bytes at byte ", begin,
        " run into the directory at byte ", end);
  std::vector<uint8_t> bytes(static_cast<size_t>(m.packed));
  file.read(begin, bytes.data(), m.packed);
  if (m.method == kDeflated) bytes = inflated(bytes, m.size);
  const auto crc = static_cast<uint32_t>(crc32_z(0, bytes.data(), bytes.size()));
  check(crc == m.crc, "npz: the bytes have CRC-32 ", crc, ", the directory says ", m.crc);
  return load_npy(memory_bytes(bytes, ""));
}

}  // namespace

TensorMap load_npz(const Bytes& file) {
  const Scope scope(file.name);
  const Directory directory = find_directory(file);
  TensorMap tensors;
  for (const Member& m : read_directory(file, directory))
    tensors.add(m.name.substr(0, m.name.size() - 4), read_member(file, m, directory.begin));
  return tensors;
}

TensorMap load_npz(const std::string& path) { return load_npz(open_bytes(path)); }

bool is_zip(const Bytes& file) {
  uint8_t head[4] = {};
  file.read(0, head, std::min<int64_t>(file.size, 4));
  return number(head, 4) == kLocalSign || number(head, 4) == kEndSign;  // the latter: of an archive without members
}

}  // namespace isonorm
