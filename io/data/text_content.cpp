#include "io/data/text_content.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace isonorm::data {
namespace {

constexpr int64_t kLeastUnits = 16;  // least number that can show UTF-16 without a mark, or halves of ids
constexpr size_t kFirstName = 256;   // the name of a zip archive's first file must be in these first bytes
constexpr std::string_view kUtf8Mark = "\xef\xbb\xbf";

struct Format {
  std::string_view begin;
  const char *name, *command;
  bool holds_ids = false;
};

constexpr Format kFormats[] = {
    {{"\x1f\x8b", 2}, "compressed by gzip", "zcat FILE > TEXT"},
    {{"BZh", 3}, "compressed by bzip2", "bzcat FILE > TEXT"},
    {{"\xfd"
      "7zXZ\0",
      6},
     "compressed by xz",
     "xzcat FILE > TEXT"},
    {{"\x28\xb5\x2f\xfd", 4}, "compressed by zstd", "zstdcat FILE > TEXT"},
    {{"PK\x03\x04", 4}, "a zip archive", "unzip -p FILE > TEXT"},
    {{"\xff\xfe\0\0", 4}, "encoded in UTF-32", "iconv -f UTF-32 -t UTF-8 FILE > TEXT"},
    {{"\0\0\xfe\xff", 4}, "encoded in UTF-32", "iconv -f UTF-32 -t UTF-8 FILE > TEXT"},
    {{"\x93NUMPY", 6},
     "an array of numpy",
     "python3 -c 'import numpy, sys; numpy.load(sys.argv[1]).astype(\"WIDTH\").tofile(sys.argv[2])' FILE IDS",
     true},
};

// Zip archives, recognised by the name of their first file.
constexpr Format kArchives[] = {
    {"/data.pkl", "a file of torch.save",
     "python3 -c 'import sys, torch; torch.load(sys.argv[1]).numpy().astype(\"WIDTH\").tofile(sys.argv[2])' FILE IDS",
     true},
    {"[Content_Types].xml", "a document of an office program", "pandoc -t plain FILE > TEXT"}};
constexpr Format kIntegers = {
    {},
    "an array of 8-byte integers",
    "python3 -c 'import numpy, sys; numpy.fromfile(sys.argv[1], \"i8\").astype(\"WIDTH\").tofile(sys.argv[2])' FILE "
    "IDS",
    true};

constexpr const char* kJsonLines =
    "python3 -c 'import json, sys; [print(json.loads(line)[\"text\"]) for line in sys.stdin]' < FILE > TEXT";

// The command that converts a table to a text. The table's first line shows the column separator.
std::string table_command(std::string_view all) {
  const std::string_view line = all.substr(0, all.find('\n'));
  const char* separator = ",";
  for (const char* other : {";", "\t"})
    if (std::ranges::count(line, *other) > std::ranges::count(line, *separator)) separator = other;
  return text("python3 -c 'import csv, sys; [print(row[\"text\"]) for row in csv.DictReader(sys.stdin, delimiter=\"",
              *separator == '\t' ? "\\t" : separator, "\")]' < FILE > TEXT");
}

// True for control characters that do not occur in texts. Texts have backspace, tab, line and page ends, and escape.
bool is_control(uint32_t c) { return c == 0x7f || (c < 0x20 && !(c >= 8 && c <= 13) && c != 0x1b); }

bool few(int64_t controls, int64_t of) { return controls * 256 <= of; }

std::vector<uint8_t> begin_of(const Bytes& file) {
  std::vector<uint8_t> bytes(static_cast<size_t>(std::min(file.size, kLookedAt)));
  if (!bytes.empty()) file.read(0, bytes.data(), std::ssize(bytes));
  return bytes;
}

// "UTF-16", "UTF-16LE", ...: the encoding's name for iconv.
std::optional<std::string> utf16_of(const std::vector<uint8_t>& bytes, bool text) {
  for (const bool big : {false, true}) {
    const auto unit = [&](size_t i) { return static_cast<uint32_t>(bytes[2 * i + big] | bytes[2 * i + !big] << 8); };
    const size_t units = bytes.size() / 2;
    if (units == 0) return {};
    const bool marked = unit(0) == 0xfeff;
    int64_t controls = 0, nul = 0, latin = 0;
    for (size_t i = marked; i < units; ++i) {
      const uint32_t c = unit(i);
      nul += c == 0, controls += is_control(c), latin += c < 0x180;
    }
    const int64_t n = static_cast<int64_t>(units) - marked;
    if (marked && nul == 0 && few(controls, n)) return "UTF-16";
    if (!text && n >= kLeastUnits && controls == 0 && latin == n && bytes.size() % 2 == 0)
      return big ? "UTF-16BE" : "UTF-16LE";
  }
  return {};
}

// True if the upper half of every number of `width` bytes is 0, and not every lower half.
bool upper_halves_are_zero(const Bytes& file, const std::vector<uint8_t>& bytes, size_t width) {
  const auto half = static_cast<int64_t>(width / 2);
  if (file.size % static_cast<int64_t>(width) != 0 || std::ssize(bytes) < kLeastUnits * half) return false;
  const auto is_zero = [](uint8_t byte) { return byte == 0; };
  bool lower = false;
  for (auto at = bytes.begin(); at != bytes.end(); at += 2 * half) {
    lower = lower || !std::all_of(at, at + half, is_zero);
    if (!std::all_of(at + half, at + 2 * half, is_zero)) return false;
  }
  return lower;
}

}  // namespace

TextContent text_content(const Bytes& file) {
  const std::vector<uint8_t> bytes = begin_of(file);
  const auto nul = std::ranges::find(bytes, 0);
  const auto control = std::ranges::find_if(bytes, is_control);
  TextContent content{.text = nul == bytes.end() && few(std::ranges::count_if(bytes, is_control), std::ssize(bytes))};
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::optional<std::string> encoding = utf16_of(bytes, content.text);
  if (content.text && !encoding) {
    std::string name = file.name;
    for (char& c : name) c = 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool lines = name.ends_with(".jsonl"), table = name.ends_with(".csv") || name.ends_with(".tsv");
    if (lines) content.format = "lines of JSON", content.command = kJsonLines;
    if (table) content.format = "a table", content.command = table_command(all);
    return content;
  }
  content.text = false;
  if (nul != bytes.end())
    content.why = text("it has a NUL byte at position ", nul - bytes.begin());
  else if (control != bytes.end())
    content.why =
        text("it has control characters, the first, ", int{*control}, ", at position ", control - bytes.begin());
  const auto take = [&](const Format& f) {
    content.format = f.name, content.command = f.command, content.holds_ids = f.holds_ids;
  };
  for (const Format& f : kFormats)
    if (all.starts_with(f.begin)) take(f);
  if (all.starts_with("PK"))
    for (const Format& f : kArchives)
      if (all.substr(0, kFirstName).find(f.begin) != all.npos) take(f);
  if (content.format.empty() && encoding) {
    content.format = text("encoded in ", *encoding);
    content.command = text("iconv -f ", *encoding, " -t UTF-8 FILE > TEXT");
    content.by_letters = *encoding != "UTF-16";
  }
  if (content.format.empty() && upper_halves_are_zero(file, bytes, 8)) take(kIntegers);
  return content;
}

bool looks_like_u32(const Bytes& file) { return upper_halves_are_zero(file, begin_of(file), 4); }

std::string_view without_mark(std::string_view text) {
  if (text.starts_with(kUtf8Mark)) text.remove_prefix(kUtf8Mark.size());
  return text;
}

Bytes without_mark(const Bytes& file) {
  constexpr int64_t kLength = std::ssize(kUtf8Mark);
  char begin[kLength];
  if (file.size < kLength) return file;
  file.read(0, begin, kLength);
  if (std::string_view(begin, sizeof begin) != kUtf8Mark) return file;
  return {file.name, file.size - kLength,
          [file](int64_t offset, void* to, int64_t n) { file.read(offset + kLength, to, n); }};
}

}  // namespace isonorm::data
