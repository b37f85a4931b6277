#include "data/text_content.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace isonorm::data {
namespace {

constexpr int64_t kLeastUnits = 16;  // of UTF-16 without a byte order mark, and of ids that are looked at

struct Format {
  std::string_view begin;
  const char *name, *command;
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
    {{"\x93NUMPY", 6},
     "an array of numpy",
     "python3 -c 'import numpy, sys; numpy.load(sys.argv[1]).astype(\"u4\").tofile(sys.argv[2])' FILE IDS"},
};

constexpr const char* kJsonLines =
    "python3 -c 'import json, sys; [print(json.loads(line)[\"text\"]) for line in sys.stdin]' < FILE > TEXT";
constexpr const char* kTable =
    "python3 -c 'import csv, sys; [print(row[\"text\"]) for row in csv.DictReader(sys.stdin)]' < FILE > TEXT";

// Control characters that texts have: backspace, tab, ends of lines and pages, escape.
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

}  // namespace

TextContent text_content(const Bytes& file) {
  const std::vector<uint8_t> bytes = begin_of(file);
  const auto nul = std::ranges::find(bytes, 0);
  const auto control = std::ranges::find_if(bytes, is_control);
  TextContent content{.text = nul == bytes.end() && few(std::ranges::count_if(bytes, is_control), std::ssize(bytes))};
  const std::optional<std::string> encoding = utf16_of(bytes, content.text);
  if (content.text && !encoding) {
    const bool lines = file.name.ends_with(".jsonl"), table = file.name.ends_with(".csv");
    if (lines) content.format = "lines of JSON", content.command = kJsonLines;
    if (table) content.format = "a table", content.command = kTable;
    return content;
  }
  content.text = false;
  if (nul != bytes.end())
    content.why = text("it has a NUL byte at position ", nul - bytes.begin());
  else if (control != bytes.end())
    content.why =
        text("it has control characters, the first, ", int{*control}, ", at position ", control - bytes.begin());
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const Format& f : kFormats)
    if (all.starts_with(f.begin)) content.format = f.name, content.command = f.command;
  if (content.format.empty() && encoding) {
    content.format = text("encoded in ", *encoding);
    content.command = text("iconv -f ", *encoding, " -t UTF-8 FILE > TEXT");
  }
  return content;
}

bool looks_like_u32(const Bytes& file) {
  const std::vector<uint8_t> bytes = begin_of(file);
  if (file.size % 4 != 0 || std::ssize(bytes) < 2 * kLeastUnits) return false;
  bool lower = false;
  for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    lower = lower || bytes[i] || bytes[i + 1];
    if (bytes[i + 2] || bytes[i + 3]) return false;
  }
  return lower;
}

}  // namespace isonorm::data
