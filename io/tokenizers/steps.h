// Internal: what happens to a text before its words are encoded: normalization, splitting, added tokens.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace isonorm::tokenizers {

// Unicode normalization form C (NFC).

// The text (valid UTF-8) in NFC (UAX #15): the text itself if it is in NFC already, else a view of `storage`.
std::string_view nfc(std::string_view text, std::string& storage);

// The regular expression that a pre-tokenizer splits text with, executed by PCRE2 with Unicode classes.

// Accepts only syntax with the same meaning in PCRE2 and in Oniguruma, for which these files are written: characters,
// escaped punctuation, \r \n \t \d, \s and \S (Unicode's White_Space), \p{..} and \P{..} of general categories, sets
// that are not nested, | ( (?: (?i: (?= (?! and the quantifiers ? * + {n} {n,} {n,m}. The first three may be lazy or
// possessive.
class Pattern {
 public:
  // Throws, naming the expression, if it contains anything else, is invalid, or could match the empty text.
  explicit Pattern(const std::string& expression);
  ~Pattern();
  Pattern(Pattern&&) noexcept;

  struct Match {
    size_t begin, end;  // bytes; both are the text's size if there is no match
  };
  // The first match that begins at byte `from` or later. The text must be UTF-8; this is not checked. Throws if PCRE2
  // gives up, after 10^7 steps.
  Match find(std::string_view text, size_t from);

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

// Added tokens, which are found in the text literally, before it is split into words.

struct AddedToken {
  std::string content;
  uint32_t id = 0;
  bool lstrip = false, rstrip = false;  // also takes the white space before or after it
  bool normalized = false;              // searched in the normalized text
  bool special = false;                 // not text: decoders leave it out
};

// A set of added tokens, as a trie.
class AddedTokens {
 public:
  void add(const AddedToken& token);  // its content must not be empty or in the set already

  // Splits a text (valid UTF-8 or not) and passes on, in order, the tokens and the non-empty pieces of text between
  // them. The search goes from left to right; the longest token at a position wins.
  void split(std::string_view text, const std::function<void(std::string_view)>& take_text,
             const std::function<void(uint32_t)>& take_id) const;

 private:
  const AddedToken* longest(std::string_view text) const;

  std::vector<AddedToken> tokens_;
  std::array<bool, 256> begins_{};  // true if a token begins with this byte
  // Edges of the trie: 256 * node + byte -> next node. The root is node 0.
  std::unordered_map<uint64_t, uint64_t> nodes_;
  std::unordered_map<uint64_t, size_t> complete_;  // the token that ends at a node
};

}  // namespace isonorm::tokenizers
