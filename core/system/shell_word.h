// Words of commands in messages, which a person can copy to a shell.
#pragma once

#include <string>

namespace isonorm {

// `word` as a POSIX shell reads it: as it is if it needs no quotes, else in single quotes.
std::string shell_word(const std::string& word);

}  // namespace isonorm
