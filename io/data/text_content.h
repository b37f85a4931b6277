// Tells from the bytes of a file whether it is a text, token ids, or a format that must be converted to text first.
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

// Number of bytes at the beginning of a file that are examined: 1 MiB.
inline constexpr int64_t kLookedAt = int64_t{1} << 20;

struct TextContent {
  bool text = false;        // a text, in UTF-8 or an older 8-bit encoding
  std::string why = {};     // if it is not a text: "it has a NUL byte at position 17"
  std::string format = {};  // a known format that must be converted: "compressed by gzip"; empty: none
  // The shell command that converts it: "zcat FILE > TEXT". If holds_ids, the command writes a file IDS of ids of the
  // dtype WIDTH.
  std::string command = {};
  bool holds_ids = false;   // it has arrays of numbers
  bool by_letters = false;  // only its letters suggest the format; u16 ids of a byte tokenizer would look the same
};

// Examines a file. A text has no NUL byte and at most one other control character in 256 bytes. Files of token ids have
// more: the upper byte of a u32 is 0, and half of the u16 ids of a text have an upper byte below 32. Known formats are
// gzip, bzip2, xz, zstd, zip, npy, files of torch.save, 8-byte integers below 2^32, UTF-32 and UTF-16. Without a byte
// order mark a file counts as UTF-16 if it consists of Latin text. A text whose name ends in .jsonl, .csv or .tsv has a
// format, too. An empty file is a text. Throws if the file cannot be read.
TextContent text_content(const Bytes& file);

// True if every second u16 of the file is 0, the others are not all 0, and there are at least 8: ids below
// 65536 as u32. Throws if the file cannot be read.
bool looks_like_u32(const Bytes& file);

// The file without the UTF-8 byte order mark that some editors write; the mark is not part of the text. Throws if the
// file cannot be read.
Bytes without_mark(const Bytes& file);
std::string_view without_mark(std::string_view text);

}  // namespace isonorm::data
