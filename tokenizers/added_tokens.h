// Internal: tokens that are found in a text as they are written, before it is cut into words.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace isonorm::tokenizers {

struct AddedToken {
  std::string content;
  uint32_t id = 0;
  bool lstrip = false, rstrip = false;  // it takes the white space before or behind it
  bool normalized = false;              // it is looked for in the normalized text
  bool special = false;                 // it is no text: what decoders leave out
};

// A set of them, as a trie.
class AddedTokens {
 public:
  void add(const AddedToken& token);  // of a content that is not empty and not there yet

  // Gives the tokens of a text (UTF-8, or not) and what is between them, which is not empty, in order. Tokens are looked for
  // from left to right; of several at one place the longest counts.
  void split(std::string_view text, const std::function<void(std::string_view)>& take_text,
             const std::function<void(uint32_t)>& take_id) const;

 private:
  const AddedToken* longest(std::string_view text) const;

  std::vector<AddedToken> tokens_;
  std::array<bool, 256> begins_{};  // whether a token begins with this byte
  // The node behind a node (256 times its number) and a byte; the root is 0.
  std::unordered_map<uint64_t, uint64_t> nodes_;
  std::unordered_map<uint64_t, size_t> complete_;  // the token that ends at a node
};

}  // namespace isonorm::tokenizers
