#include "tokenizers/nfc.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>

#include "core/error.h"

namespace isonorm::tokenizers {
namespace {

bool is_ascii(char c) { return static_cast<uint8_t>(c) < 0x80; }

}  // namespace

// In pieces: nothing in front of an ASCII character becomes one with it or with what is behind it.
std::string_view nfc(std::string_view text, std::string& storage) {
  size_t done = 0;  // bytes of the text that storage has
  bool changed = false;
  for (size_t at = 0; at < text.size();) {
    if (is_ascii(text[at])) {
      ++at;
      continue;
    }
    const size_t begin = at - (at > 0 ? 1 : 0);  // with the ASCII character that a mark may belong to
    bool marks = false;                          // below U+0300, in two bytes up to "\xcb\xbf", all is in the form
    for (; at < text.size() && !is_ascii(text[at]); ++at) marks |= static_cast<uint8_t>(text[at]) > 0xcb;
    if (!marks) continue;
    const std::string_view piece = text.substr(begin, at - begin);
    utf8proc_uint8_t* raw = nullptr;
    const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(piece.data()),
                                               static_cast<utf8proc_ssize_t>(piece.size()), &raw,
                                               static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> held(raw, &std::free);
    check(size >= 0, "normalization form C of ", piece.size(), " bytes: ", utf8proc_errmsg(size));
    const std::string_view composed(reinterpret_cast<const char*>(raw), static_cast<size_t>(size));
    if (composed == piece) continue;
    if (!changed) storage.clear();
    changed = true;
    storage += text.substr(done, begin - done);
    storage += composed;
    done = at;
  }
  if (!changed) return text;
  return storage += text.substr(done);
}

}  // namespace isonorm::tokenizers
