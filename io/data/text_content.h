// Tells from the bytes of a file if it is a text, token ids, or a format that has to be converted to a text first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/system/file.h"

namespace isonorm::data {

// Width of token ids in a file, little-endian.
enum class IdWidth { u16, u32 };
inline constexpr const char* kIdWidthNames[] = {"u16", "u32"};
constexpr const char* name_of(IdWidth w) { return kIdWidthNames[static_cast<size_t>(w)]; }
constexpr int64_t bytes_of(IdWidth w) { return w == IdWidth::u16 ? 2 : 4; }

// Bytes at the begin of a file that are looked at: 1 MiB.
inline constexpr int64_t kLookedAt = int64_t{1} << 20;

struct TextContent {
  bool text = false;        // a text, in UTF-8 or an older encoding of bytes
  std::string why = {};     // if it is no text: "it has a NUL byte at position 17"
  std::string format = {};  // a known format that has to be unpacked: "compressed by gzip"; empty: none
  // Of a shell, which unpacks it: "zcat FILE > TEXT"; makes a file IDS, of ids of the dtype WIDTH, if holds_ids.
  std::string command = {};
  bool holds_ids = false;   // it has arrays of numbers
  bool by_letters = false;  // the format is known by the letters alone: bytes as u16 ids would look the same
};

// A text has no NUL byte and at most one other control character in 256 bytes. Files of token ids have more: the upper byte of a
// u32 is 0, and half of the u16 ids of a text have an upper byte below 32. Known formats are gzip, bzip2, xz, zstd, zip, npy, files of
// torch.save, 8-byte integers that are below 2^32, UTF-32 and UTF-16; without a byte order mark a file is UTF-16 if all of it is text of
// Latin letters. A text whose name ends in .jsonl, .csv or .tsv has a format, too. An empty file is a text. Throws if the file cannot be
// read.
TextContent text_content(const Bytes& file);

// True if every second u16 of the file is 0, the others are not all 0, and there are at least 8 of them: ids below 65536 as u32.
// Throws if the file cannot be read.
bool looks_like_u32(const Bytes& file);

// Without the UTF-8 byte order mark that texts of some editors begin with: it is no part of the text. Throws if the file cannot be
// read.
Bytes without_mark(const Bytes& file);
std::string_view without_mark(std::string_view text);

}  // namespace isonorm::data
