#include "io/tokenizers/tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "core/error.h"
#include "core/system/file.h"
#include "core/system/foreign_text.h"
#include "io/tokenizers/steps.h"
#include "io/tokenizers/tokenizer_file.h"

namespace isonorm::tokenizers {
namespace {

constexpr std::string_view kEnds[] = {"<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|im_end|>", "</s>", "<eos>"};

// Length in bytes of the longest prefix that is valid UTF-8 (utf8 = true) or that contains no valid character (false).
size_t run_of(std::string_view text, bool utf8) {
  size_t end = 0;
  while (end < text.size()) {
    const int length = static_cast<uint8_t>(text[end]) < 0x80 ? 1 : utf8_length(text.substr(end, 4));
    if ((length > 0) != utf8) break;
    end += utf8 ? static_cast<size_t>(length) : 1;
  }
  return end;
}

}  // namespace

struct Tokenizer::Parts {
  using Take = std::function<void(std::span<const uint32_t>)>;

  explicit Parts(TokenizerFile file) : nfc(file.nfc), pairs(file.vocabulary, file.merges, file.ignore_merges) {
    for (const std::string& p : file.patterns) patterns.emplace_back(p);
    for (const auto& [token, id] : file.vocabulary) bytes.emplace(id, bytes_of_token(token));
    for (AddedToken& token : file.added) {
      bytes[token.id] = token.content;
      if (token.special && std::ranges::count(kEnds, token.content) > 0) ends.push_back(token.id);
      std::string storage;
      if (token.normalized && nfc) token.content = std::string(tokenizers::nfc(token.content, storage));
      (token.normalized ? normalized : raw).add(token);
    }
    std::ranges::sort(ends);
    for (const auto& [id, ignored] : bytes) vocab = std::max(vocab, int64_t{id} + 1);
  }

  void encode(std::string_view text, const Take& take) {
    const auto token = [&](uint32_t id) { take({&id, 1}); };
    raw.split(
        text,
        [&](std::string_view piece) {
          while (!piece.empty()) {
            const size_t valid = run_of(piece, true);
            std::string storage;
            const std::string_view good = piece.substr(0, valid);
            normalized.split(
                nfc ? tokenizers::nfc(good, storage) : good, [&](std::string_view words) { cut(words, 0, take); },
                token);
            piece.remove_prefix(valid);
            const size_t invalid = run_of(piece, false);
            if (invalid > 0) word(piece.substr(0, invalid), take);
            piece.remove_prefix(invalid);
          }
        },
        token);
  }

  // Splits by the patterns from number `pattern` on. Both matches and the text between matches become pieces.
  void cut(std::string_view text, size_t pattern, const Take& take) {
    if (pattern == patterns.size()) return word(text, take);
    for (size_t done = 0; done < text.size();) {
      const auto [begin, end] = patterns[pattern].find(text, done);
      if (begin > done) cut(text.substr(done, begin - done), pattern + 1, take);
      if (end > begin) cut(text.substr(begin, end - begin), pattern + 1, take);
      done = end;
    }
  }

  void word(std::string_view bytes_of_word, const Take& take) {
    ids.clear();
    pairs.encode(bytes_of_word, ids);
    take(ids);
  }

  bool nfc;
  int64_t vocab = 0;
  std::vector<int64_t> ends;
  BytePairs pairs;
  std::vector<Pattern> patterns;
  AddedTokens raw, normalized;
  std::unordered_map<uint32_t, std::string> bytes;  // by id
  std::vector<uint32_t> ids;                        // of the current word
};

Tokenizer::Tokenizer(const std::string& path) {
  TokenizerFile file = read_tokenizer(path);
  const Scope scope(path);
  parts_ = std::make_unique<Parts>(std::move(file));
}

Tokenizer::Tokenizer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Tokenizer Tokenizer::of_json(std::string_view json) {
  return Tokenizer(std::make_unique<Parts>(read_tokenizer_json(json)));
}

Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;

const std::vector<int64_t>& Tokenizer::end_tokens() const { return parts_->ends; }

int64_t Tokenizer::vocab() const { return parts_->vocab; }

void Tokenizer::encode(std::string_view text, const std::function<void(std::span<const uint32_t>)>& take) {
  parts_->encode(text, take);
}

std::vector<uint32_t> Tokenizer::encode(std::string_view text) {
  std::vector<uint32_t> all;
  encode(text, [&](std::span<const uint32_t> ids) { all.insert(all.end(), ids.begin(), ids.end()); });
  return all;
}

std::string_view Tokenizer::bytes_of(int64_t id) const {
  const auto at = id >= 0 && id < parts_->vocab ? parts_->bytes.find(static_cast<uint32_t>(id)) : parts_->bytes.end();
  check(at != parts_->bytes.end(), "tokenizer: no token has the id ", id, "; they go from 0 to ", parts_->vocab - 1);
  return at->second;
}

std::string Tokenizer::decode(std::span<const uint32_t> ids) const {
  std::string bytes;
  for (uint32_t id : ids) bytes += bytes_of(id);
  return bytes;
}

std::vector<std::string> files_of(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path file = path;
  std::vector<std::string> files = {path};
  if (fs::is_directory(file))
    for (const char* name : {"tokenizer.json", "vocab.json", "merges.txt"}) files.push_back((file / name).string());
  if (file.filename() == "vocab.json") files.push_back((file.parent_path() / "merges.txt").string());
  return files;
}

std::string json_of(const std::string& path, int64_t limit) {
  const std::string file = tokenizer_json(path);
  check(!file.empty(), path, ": vocab.json and merges.txt are two files; expected tokenizer.json, which has both");
  std::string json = read_text(file, limit);
  const Scope scope(file);
  Tokenizer::of_json(json);
  return json;
}

}  // namespace isonorm::tokenizers
