// Internal: byte-level byte-pair encoding: a word as bytes, of which pairs become one token in the order of their merges.
#pragma once

#include <array>
#include <cstdint>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace isonorm::tokenizers {

using Vocabulary = std::unordered_map<std::string, uint32_t>;  // tokens as their file writes them

// The bytes of a token that a file writes with a character for each (as GPT-2's bytes_to_unicode); of one with other
// characters, as it is.
std::string bytes_of_token(const std::string& written);

struct Merge {
  std::string left, right;  // as the vocabulary writes them
};

class BytePairs {
 public:
  // The earlier of `merges` go before the later. `whole`: a word that is a token is that token, whatever the merges say.
  // Throws, naming it, where a part or the result of a merge is no token.
  BytePairs(const Vocabulary& vocabulary, std::span<const Merge> merges, bool whole);

  // Appends the ids of a word of bytes: of the pairs that have a merge the earliest becomes one, the leftmost of several,
  // until there is none (Sennrich et al., 1508.07909). Throws where a byte is no token, or the word has over 16 MiB.
  void encode(std::string_view word, std::vector<uint32_t>& ids);

 private:
  struct Result {
    uint32_t rank, id;
  };
  struct Symbol {
    uint32_t id;
    int32_t before, behind;  // places of the neighbours; -1: none
    bool gone = false;       // it is part of the one before
  };
  struct Candidate {
    uint32_t rank, id;
    int32_t at;
    bool operator>(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
  };
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  void merge(std::string_view word, std::vector<uint32_t>& ids);
  void consider(int32_t at);

  static constexpr int64_t kNone = -1;
  std::array<int64_t, 256> id_of_byte_;
  std::unordered_map<uint64_t, Result> merges_;                             // of two ids
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> words_;  // tokens that whole words become

  std::vector<Symbol> symbols_;  // of the word that is merged
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue_;
  std::unordered_map<std::string, std::vector<uint32_t>, Hash, std::equal_to<>> seen_;  // words
};

}  // namespace isonorm::tokenizers
