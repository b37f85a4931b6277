#include "io/tokenizers/steps.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/error.h"

namespace isonorm::tokenizers {
namespace {

constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);

bool is_ascii(char c) { return static_cast<uint8_t>(c) < 0x80; }

utf8proc_ssize_t checked(utf8proc_ssize_t result) {
  check(result >= 0, "normalization form C: ", utf8proc_errmsg(result));
  return result;
}

// Canonical decomposition. utf8proc_decompose() takes quadratic time in a run of marks, because it moves each mark past
// its neighbours one by one. A stable sort of the run by combining class gives the same order (UAX #15, Canonical
// Ordering Algorithm).
std::vector<int32_t> decomposed(std::string_view text) {
  std::vector<int32_t> all;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (size_t at = 0; at < text.size();) {
    int32_t character = 0, parts[4];  // a canonical decomposition has at most 4 characters
    at += static_cast<size_t>(
        checked(utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &character)));
    all.insert(all.end(), parts, parts + checked(utf8proc_decompose_char(character, parts, 4, kOptions, nullptr)));
  }
  const auto combining_class = [](int32_t c) { return utf8proc_get_property(c)->combining_class; };
  const auto is_mark = [&](int32_t c) { return combining_class(c) != 0; };
  for (auto mark = all.begin(); (mark = std::find_if(mark, all.end(), is_mark)) != all.end();) {
    const auto end = std::find_if_not(mark, all.end(), is_mark);
    std::ranges::stable_sort(mark, end, {}, combining_class);
    mark = end;
  }
  return all;
}

std::string composed(std::string_view text) {
  std::vector<int32_t> characters = decomposed(text);
  characters.resize(
      static_cast<size_t>(checked(utf8proc_normalize_utf32(characters.data(), std::ssize(characters), kOptions))));
  std::string all;
  for (int32_t character : characters) {
    utf8proc_uint8_t bytes[4];
    all.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(utf8proc_encode_char(character, bytes)));
  }
  return all;
}

}  // namespace

// Works in pieces: characters before an ASCII character never compose with it or with characters after it.
std::string_view nfc(std::string_view text, std::string& storage) {
  size_t done = 0;  // bytes of the text that are in `storage`
  bool changed = false;
  for (size_t at = 0; at < text.size();) {
    if (is_ascii(text[at])) {
      ++at;
      continue;
    }
    const size_t begin = at - (at > 0 ? 1 : 0);  // includes the ASCII character that a mark may combine with
    bool marks = false;  // characters below U+0300 (two bytes, up to "\xcb\xbf") are in NFC already
    for (; at < text.size() && !is_ascii(text[at]); ++at) marks |= static_cast<uint8_t>(text[at]) > 0xcb;
    if (!marks) continue;
    const std::string_view piece = text.substr(begin, at - begin);
    const std::string normalized = composed(piece);
    if (normalized == piece) continue;
    if (!changed) storage.clear();
    changed = true;
    storage += text.substr(done, begin - done);
    storage += normalized;
    done = at;
  }
  if (!changed) return text;
  return storage += text.substr(done);
}

}  // namespace isonorm::tokenizers
