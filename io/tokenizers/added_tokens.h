// Internal: added tokens, which are found in the text literally, before it is split into words.
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
