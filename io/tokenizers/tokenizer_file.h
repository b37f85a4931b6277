// Internal: reads tokenizer.json, or vocab.json with merges.txt. Refuses everything that would change ids in an
// unsupported way.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/tokenizers/byte_pairs.h"
#include "io/tokenizers/steps.h"

namespace isonorm::tokenizers {

// The pattern of GPT-2, which the pre-tokenizer ByteLevel uses.
inline constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

struct TokenizerFile {
  Vocabulary vocabulary;
  std::vector<Merge> merges;
  bool ignore_merges = false;         // a word that is in the vocabulary becomes one token
  bool nfc = false;                   // normalizes the text to form C
  std::vector<std::string> patterns;  // each splits the pieces from the pattern before it
  // An added token is in the vocabulary with the same id, or has the next id, counted from the vocabulary's size: the
  // package `tokenizers` gives these ids regardless of the file.
  std::vector<AddedToken> added;
};

// Reads tokenizer.json; or vocab.json with merges.txt in the same folder; or a folder with these files. If the folder
// has both kinds, tokenizer.json is read.
//
// Supported entries in a tokenizer.json of the package `tokenizers`: model BPE without dropout; normalizer NFC;
// pre-tokenizer ByteLevel, Split by an isolated Regex, Digits, or a Sequence with exactly one ByteLevel; decoder
// ByteLevel. GPT-2's pair of files gets GPT-2's pattern, and <|endoftext|> as an added token if the vocabulary has it.
//
// Throws, naming file and entry, on any other entry and if ids collide.
TokenizerFile read_tokenizer(const std::string& path);

// The path of the tokenizer.json that `path` denotes; empty if it denotes vocab.json with merges.txt.
std::string tokenizer_json(const std::string& path);
// Reads the text of a tokenizer.json. Throws, naming the entry.
TokenizerFile read_tokenizer_json(std::string_view json);

}  // namespace isonorm::tokenizers
