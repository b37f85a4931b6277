// Internal: Unicode's normalization form C.
#pragma once

#include <string>
#include <string_view>

namespace isonorm::tokenizers {

// The text, which has to be UTF-8, in that form (UAX #15): itself where it is in it already, else what `storage` becomes.
std::string_view nfc(std::string_view text, std::string& storage);

}  // namespace isonorm::tokenizers
