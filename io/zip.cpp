#include "io/zip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "io/fits.h"
#include "io/packed.h"

namespace isonorm::io {
namespace {

constexpr int64_t kEndSize = 22, kEntrySize = 46, kLocalSize = 30, kCommentLimit = 0xffff;
constexpr int64_t kWideEndSize = 56, kLocatorSize = 20;  // of zip64
constexpr uint64_t kEndSign = 0x06054b50, kEntrySign = 0x02014b50, kLocalSign = 0x04034b50, kWideEndSign = 0x06064b50,
                   kLocatorSign = 0x07064b50;
constexpr uint64_t kWide = 0xffffffff;  // marks a number that is in the zip64 field instead
constexpr uint64_t kWideField = 1;      // type of the zip64 field
constexpr uint64_t kStored = 0, kDeflated = 8;
constexpr int64_t kMostPerByte = 1032;  // deflate encodes at most 258 bytes in 2 bits
constexpr int64_t kDirectoryLimit = int64_t{1} << 26;

// Checks a number of the file that is an offset or a size: it must be at most `most`.
int64_t in_file(uint64_t n, int64_t most, const char* what) {
  check(n <= static_cast<uint64_t>(most), "zip: ", what, " is ", n, ", the file has ", most, " bytes for it");
  return static_cast<int64_t>(n);
}

struct Directory {
  int64_t begin = 0, size = 0;
  uint64_t members = 0;
};

// Finds the directory through zip64's end record, if its locator is there, just before byte `end`.
bool find_wide_directory(const Bytes& file, int64_t end, Directory& d) {
  uint8_t locator[kLocatorSize], p[kWideEndSize];
  if (end < kLocatorSize) return false;
  file.read(end - kLocatorSize, locator, kLocatorSize);
  if (little_endian(locator, 4) != kLocatorSign) return false;
  const int64_t place = in_file(little_endian(locator + 8, 8), end - kLocatorSize, "the place of zip64's record");
  check(end - kLocatorSize - place >= kWideEndSize, "zip: zip64's record at byte ", place, " is cut off");
  file.read(place, p, kWideEndSize);
  check(little_endian(p, 4) == kWideEndSign, "zip: there is no zip64 record at byte ", place);
  d.size = in_file(little_endian(p + 40, 8), place, "the size of the directory");
  d.begin = in_file(little_endian(p + 48, 8), place - d.size, "the place of the directory");
  d.members = little_endian(p + 32, 8);
  check(d.begin + d.size == place, "zip: the directory lies at byte ", d.begin, " and has ", d.size,
        " bytes, expected it to end at byte ", place);
  return true;
}

// The end record is the last thing in the file, except for a comment.
Directory find_directory(const Bytes& file) {
  const int64_t tail = std::min(file.size, kEndSize + kCommentLimit);
  std::vector<uint8_t> bytes(static_cast<size_t>(tail));
  file.read(file.size - tail, bytes.data(), tail);
  for (int64_t at = tail - kEndSize; at >= 0; --at) {
    const uint8_t* p = bytes.data() + at;
    if (little_endian(p, 4) != kEndSign || static_cast<int64_t>(little_endian(p + 20, 2)) != tail - kEndSize - at)
      continue;
    const int64_t end = file.size - tail + at;
    check(little_endian(p + 4, 4) == 0 && little_endian(p + 8, 2) == little_endian(p + 10, 2),
          "zip: one disk of several, expected a whole archive");
    Directory d;
    if (find_wide_directory(file, end, d)) return d;
    d = {static_cast<int64_t>(little_endian(p + 16, 4)), static_cast<int64_t>(little_endian(p + 12, 4)),
         little_endian(p + 10, 2)};
    check(d.begin + d.size == end, "zip: the directory lies at byte ", d.begin, " and has ", d.size,
          " bytes, expected it to end at byte ", end);
    return d;
  }
  check(false, "zip: this is not a zip archive: it has no end-of-central-directory record");
  return {};
}

// The numbers of an entry that its zip64 field can replace, in the field's order.
struct Places {
  uint64_t size, packed, place;
};

void widen(Places& n, const uint8_t* fields, int64_t bytes) {
  while (bytes >= 4) {
    const uint64_t kind = little_endian(fields, 2);
    const auto length = static_cast<int64_t>(little_endian(fields + 2, 2));
    check(length <= bytes - 4, "zip: a field of ", length, " bytes leaves the entry");
    fields += 4, bytes -= 4;
    int64_t at = 0;
    for (uint64_t* number : {&n.size, &n.packed, &n.place}) {
      if (kind != kWideField || *number != kWide) continue;
      check(at + 8 <= length, "zip: the zip64 field of the entry is cut off");
      *number = little_endian(fields + at, 8), at += 8;
    }
    fields += length, bytes -= length;
  }
}

std::vector<ZipMember> read_directory(const Bytes& file, const Directory& d) {
  check(d.size <= kDirectoryLimit, "zip: the directory has ", d.size, " bytes, over the limit of ", kDirectoryLimit);
  std::vector<uint8_t> bytes(static_cast<size_t>(d.size));  // bounded by the file: the directory is within it
  file.read(d.begin, bytes.data(), d.size);
  std::vector<ZipMember> members;
  int64_t at = 0;
  for (uint64_t i = 0; i < d.members; ++i) {
    const uint8_t* p = bytes.data() + at;
    check(d.size - at >= kEntrySize && little_endian(p, 4) == kEntrySign, "zip: entry ", i,
          " of the directory is damaged");
    const auto length = [&](int64_t of) { return static_cast<int64_t>(little_endian(p + of, 2)); };
    const int64_t name = length(28), fields = length(30), rest = name + fields + length(32);
    check(rest <= d.size - at - kEntrySize, "zip: entry ", i, " of the directory leaves it");
    ZipMember m;
    m.name.assign(reinterpret_cast<const char*>(p + kEntrySize), static_cast<size_t>(name));
    const Scope scope(m.name);
    check((little_endian(p + 8, 2) & 1) == 0, "zip: the member is encrypted");
    const uint64_t method = little_endian(p + 10, 2);
    check(method == kStored || method == kDeflated, "zip: compressed by method ", method,
          ", expected 0 (stored) or 8 (deflated)");
    Places n{little_endian(p + 24, 4), little_endian(p + 20, 4), little_endian(p + 42, 4)};
    widen(n, p + kEntrySize + name, fields);
    m.deflated = method == kDeflated, m.crc = static_cast<uint32_t>(little_endian(p + 16, 4));
    m.packed = in_file(n.packed, d.begin, "the size of the member");
    m.size = in_file(n.size, INT64_MAX, "the size of the member");
    check(m.deflated ? m.size / kMostPerByte <= m.packed : m.size == m.packed, "zip: ", m.size,
          " bytes cannot come from ", m.packed, m.deflated ? " deflated" : " stored", " ones");
    m.begin = in_file(n.place, d.begin, "the place of the member");  // of its local header, until pass_headers()
    members.push_back(std::move(m));
    at += kEntrySize + rest;
  }
  check(at == d.size, "zip: ", d.size - at, " bytes after the last entry of the directory");
  return members;
}

// Advances each member's begin past its local header. The sizes in local headers may be missing or wrong (NumPy and
// PyTorch write them after the data or in a zip64 field), so the directory's sizes are used.
void pass_headers(const Bytes& file, std::vector<ZipMember>& members, int64_t end) {
  std::vector<size_t> order(members.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return members[a].begin > members[b].begin; });
  for (const size_t i : order) {  // from last to first
    ZipMember& m = members[i];
    const Scope scope(m.name);
    const int64_t place = m.begin;
    uint8_t head[kLocalSize];
    check(place <= end - kLocalSize, "zip: the member lies at byte ", place, ", the next structure at byte ", end);
    file.read(place, head, kLocalSize);
    check(little_endian(head, 4) == kLocalSign, "zip: there is no member at byte ", place);
    m.begin += kLocalSize + static_cast<int64_t>(little_endian(head + 26, 2) + little_endian(head + 28, 2));
    check(m.begin <= end && m.packed <= end - m.begin, "zip: ", m.packed, " bytes at byte ", m.begin,
          " overlap the next structure at byte ", end);
    end = place;
  }
}

std::vector<uint8_t> inflated(const std::vector<uint8_t>& packed, int64_t size) {
  constexpr int64_t kMost = std::numeric_limits<uInt>::max();
  check(size < kMost && static_cast<int64_t>(packed.size()) <= kMost, "zip: ", size,
        " bytes are deflated, expected less than 4 GiB, or stored ones");
  std::vector<uint8_t> out(static_cast<size_t>(size) + 1);  // one byte more, to detect data that are longer
  z_stream z{};
  check(inflateInit2(&z, -15) == Z_OK, "zip: zlib cannot start");  // largest window, no zlib header
  z.next_in = const_cast<Bytef*>(packed.data());
  z.avail_in = static_cast<uInt>(packed.size());
  z.next_out = out.data();
  z.avail_out = static_cast<uInt>(out.size());
  const int status = inflate(&z, Z_FINISH);
  const auto written = static_cast<int64_t>(z.total_out);
  const bool whole = status == Z_STREAM_END && z.avail_in == 0;
  inflateEnd(&z);
  check(whole && written == size, "zip: damaged compression: ", written, " bytes, declared are ", size);
  out.pop_back();
  return out;
}

}  // namespace

std::vector<ZipMember> zip_members(const Bytes& file) {
  const Directory directory = find_directory(file);
  std::vector<ZipMember> members = read_directory(file, directory);
  pass_headers(file, members, directory.begin);
  return members;
}

std::vector<uint8_t> unzipped(const Bytes& file, const ZipMember& m) {
  check_fits(m.size, "zip: the member");
  std::vector<uint8_t> bytes(static_cast<size_t>(m.packed));
  file.read(m.begin, bytes.data(), m.packed);
  if (m.deflated) bytes = inflated(bytes, m.size);
  const auto crc = static_cast<uint32_t>(crc32_z(0, bytes.data(), bytes.size()));
  check(m.crc == 0 || crc == m.crc, "zip: the bytes have CRC-32 ", crc, ", the directory says ", m.crc);
  return bytes;
}

}  // namespace isonorm::io
