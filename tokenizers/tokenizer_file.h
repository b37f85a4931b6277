// Internal: what tokenizer.json, or vocab.json with merges.txt, says, with everything refused that would change ids in a way
// that is not here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/added_tokens.h"
#include "tokenizers/byte_pairs.h"

namespace isonorm::tokenizers {

// Of GPT-2, by which a pre-tokenizer ByteLevel cuts.
inline constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

struct TokenizerFile {
  Vocabulary vocabulary;
  std::vector<Merge> merges;
  bool ignore_merges = false;         // a word that is in the vocabulary becomes one token
  bool nfc = false;                   // normalizes the text to form C
  std::vector<std::string> patterns;  // each splits the pieces that the pattern before left
  // Each is in the vocabulary with the same id, or has the next id, counted from the vocabulary's size: the package
  // `tokenizers` gives these ids whatever the file says.
  std::vector<AddedToken> added;
};

// Reads tokenizer.json; or vocab.json with merges.txt in the same folder; or a folder with one of these. If the folder has both,
// tokenizer.json is read.
//
// Supported entries in a tokenizer.json of the package `tokenizers`: model BPE without dropout; normalizer NFC; pre-tokenizer
// ByteLevel, Split by an isolated Regex, Digits, or a Sequence with exactly one ByteLevel; decoder ByteLevel.
// GPT-2's pair of files gets GPT-2's pattern, and <|endoftext|> as an added token if the vocabulary has it.
//
// Throws, naming file and entry, if it has any other entry or if ids collide.
TokenizerFile read_tokenizer(const std::string& path);

// The tokenizer.json that such a path means; empty where it means GPT-2's pair of files.
std::string tokenizer_json(const std::string& path);
// Reads what is in a tokenizer.json. Throws, naming the entry.
TokenizerFile read_tokenizer_json(std::string_view json);

}  // namespace isonorm::tokenizers
