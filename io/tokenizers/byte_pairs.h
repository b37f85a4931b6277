// Internal: byte-level byte-pair encoding. The bytes of a word are merged pair by pair, in the order of the merges.
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

using Vocabulary = std::unordered_map<std::string, uint32_t>;  // tokens as written in their file

// The bytes of a token whose file writes one character for each byte (GPT-2's bytes_to_unicode). A token with other
// characters is returned as it is.
std::string bytes_of_token(const std::string& written);

struct Merge {
  std::string left, right;  // as written in the vocabulary
};

class BytePairs {
 public:
  // Earlier `merges` have priority. whole: a word that is a token becomes that token, regardless of the merges. Throws,
  // naming the merge, if a part or the result is not a token.
  BytePairs(const Vocabulary& vocabulary, std::span<const Merge> merges, bool whole);

  // Appends the ids of a word of bytes. While a pair of neighbours has a merge, merges the pair with the highest
  // priority, the leftmost first (Sennrich et al., 1508.07909). Throws if a byte is not a token, or if the word is
  // longer than 16 MiB.
  void encode(std::string_view word, std::vector<uint32_t>& ids);

 private:
  struct Result {
    uint32_t rank, id;
  };
  struct Symbol {
    uint32_t id;
    int32_t before, behind;  // positions of the neighbours; -1: none
    bool gone = false;       // merged into the symbol before it
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
  std::unordered_map<uint64_t, Result> merges_;                             // by pair of ids
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> words_;  // whole words that are tokens

  std::vector<Symbol> symbols_;  // of the current word
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue_;
  std::unordered_map<std::string, std::vector<uint32_t>, Hash, std::equal_to<>> seen_;  // ids of words encoded before
};

}  // namespace isonorm::tokenizers
