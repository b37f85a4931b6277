// Internal: Unicode normalization form C (NFC).
#pragma once

#include <string>
#include <string_view>

namespace isonorm::tokenizers {

// The text (valid UTF-8) in NFC (UAX #15): the text itself if it is in NFC already, else a view of `storage`.
std::string_view nfc(std::string_view text, std::string& storage);

}  // namespace isonorm::tokenizers
