#include "io/tokenizers/byte_pairs.h"

#include "core/error.h"
#include "core/system/foreign_text.h"

namespace isonorm::tokenizers {
namespace {

constexpr size_t kLongestWord = size_t{1} << 24;
constexpr size_t kLongestKept = 64, kWordsKept = 1 << 16;  // cache limits: bytes of a word, number of words (10 MB)

// The byte that a character represents: printable Latin-1 characters represent themselves, U+0100 and following
// represent the other bytes in order. -1 if the character represents no byte.
int byte_of(int character) {
  static const std::array<int, 324> bytes = [] {
    std::array<int, 324> all;
    all.fill(-1);
    int next = 256;
    for (int b = 0; b < 256; ++b) {
      const bool printable = (b > 0x20 && b < 0x7f) || (b > 0xa0 && b != 0xad);
      all[static_cast<size_t>(printable ? b : next++)] = b;
    }
    return all;
  }();
  return character < std::ssize(bytes) ? bytes[static_cast<size_t>(character)] : -1;
}

// The bytes of a token that is written with these characters; "" if it has any other character.
std::string written_bytes(const std::string& written) {
  std::string bytes;
  for (size_t i = 0; i < written.size();) {
    const auto first = static_cast<uint8_t>(written[i]);
    const int length = utf8_length(std::string_view(written).substr(i));
    const int character = length == 1 ? first : length == 2 ? (first & 31) << 6 | (written[i + 1] & 63) : 324;
    const int byte = byte_of(character);
    if (byte < 0) return "";
    bytes += static_cast<char>(byte);
    i += static_cast<size_t>(length);
  }
  return bytes;
}

uint64_t pair_of(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }

}  // namespace

std::string bytes_of_token(const std::string& written) {
  const std::string bytes = written_bytes(written);
  return bytes.empty() ? written : bytes;
}

BytePairs::BytePairs(const Vocabulary& vocabulary, std::span<const Merge> merges, bool whole) {
  id_of_byte_.fill(kNone);
  for (const auto& [written, id] : vocabulary) {
    const std::string bytes = written_bytes(written);
    if (bytes.size() == 1) id_of_byte_[static_cast<uint8_t>(bytes[0])] = id;
    if (whole && !bytes.empty()) words_.emplace(bytes, id);
  }
  merges_.reserve(merges.size());
  const auto id_of = [&](const std::string& token, const Merge& m) {
    const auto at = vocabulary.find(token);
    check(at != vocabulary.end(), "merge ", &m - merges.data(), " is of ", Shown{m.left}, " and ", Shown{m.right},
          ", but ", Shown{token}, " is no token");
    return at->second;
  };
  uint32_t rank = 0;
  for (const Merge& m : merges) {
    const uint32_t left = id_of(m.left, m), right = id_of(m.right, m);
    merges_.insert_or_assign(pair_of(left, right), Result{rank++, id_of(m.left + m.right, m)});
  }
}

void BytePairs::encode(std::string_view word, std::vector<uint32_t>& ids) {
  if (const auto token = words_.find(word); token != words_.end()) return ids.push_back(token->second);
  if (word.size() > kLongestKept) return merge(word, ids);
  auto at = seen_.find(word);
  if (at == seen_.end()) {
    std::vector<uint32_t> found;
    merge(word, found);
    if (seen_.size() == kWordsKept) seen_.clear();
    at = seen_.emplace(word, std::move(found)).first;
  }
  ids.insert(ids.end(), at->second.begin(), at->second.end());
}

void BytePairs::merge(std::string_view word, std::vector<uint32_t>& ids) {
  check(word.size() <= kLongestWord, "a word of ", word.size(), " bytes, over the limit of ", kLongestWord,
        "; it begins with ", Shown{whole_characters(word, 40)});
  symbols_.clear();
  const auto size = static_cast<int32_t>(word.size());
  for (int32_t i = 0; i < size; ++i) {
    const auto byte = static_cast<uint8_t>(word[static_cast<size_t>(i)]);
    check(id_of_byte_[byte] != kNone, "byte ", byte, " is no token of the vocabulary; it is in the word ",
          Shown{whole_characters(word, 40)});
    symbols_.push_back({static_cast<uint32_t>(id_of_byte_[byte]), i - 1, i + 1 < size ? i + 1 : -1});
  }
  for (int32_t i = 0; i < size; ++i) consider(i);
  while (!queue_.empty()) {
    const Candidate c = queue_.top();
    queue_.pop();
    Symbol& left = symbols_[c.at];
    if (left.gone || left.behind < 0) continue;
    // The neighbours may have changed since this candidate was queued. Like the package `tokenizers`, test only that
    // the pair still merges to the same id.
    Symbol& right = symbols_[left.behind];
    const auto now = merges_.find(pair_of(left.id, right.id));
    if (now == merges_.end() || now->second.id != c.id) continue;
    left.id = c.id;
    left.behind = right.behind;
    right.gone = true;
    if (left.behind >= 0) symbols_[left.behind].before = c.at;
    consider(left.before);
    consider(c.at);
  }
  for (int32_t i = 0; i >= 0 && i < size; i = symbols_[i].behind) ids.push_back(symbols_[i].id);
}

// Queues the merge of the symbol at this position with the next one, if there is one.
void BytePairs::consider(int32_t at) {
  if (at < 0 || symbols_[at].behind < 0) return;
  const auto found = merges_.find(pair_of(symbols_[at].id, symbols_[symbols_[at].behind].id));
  if (found != merges_.end()) queue_.push({found->second.rank, found->second.id, at});
}

}  // namespace isonorm::tokenizers
