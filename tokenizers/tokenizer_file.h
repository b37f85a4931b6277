// Internal: what tokenizer.json, or vocab.json with merges.txt, says, with everything refused that would change ids in a way
// that is not here.
#pragma once

#include <string>
#include <vector>

#include "tokenizers/added_tokens.h"
#include "tokenizers/byte_pairs.h"

namespace isonorm::tokenizers {

struct TokenizerFile {
  Vocabulary vocabulary;
  std::vector<Merge> merges;
  bool ignore_merges = false;         // a word that is a token is that token
  bool nfc = false;                   // the text is brought into normalization form C
  std::vector<std::string> patterns;  // each cuts what the one before left
  std::vector<AddedToken> added;      // each has an id of its own, or is in the vocabulary with that id
};

// Reads tokenizer.json of the package `tokenizers`: model BPE without dropout; normalizer NFC; pre-tokenizer ByteLevel, Split by
// an isolated Regex, Digits, or a Sequence of them with one ByteLevel; decoder ByteLevel. Throws, naming file and entry, where
// it has something else, or ids collide.
TokenizerFile read_tokenizer_json(const std::string& path);

// Reads GPT-2's pair of files: its pattern, and <|endoftext|> as an added token where the vocabulary has it.
TokenizerFile read_vocabulary_and_merges(const std::string& vocabulary, const std::string& merges);

}  // namespace isonorm::tokenizers
