// Byte-level BPE tokenizers of the Hugging Face hub: GPT-2, GPT-NeoX, OLMo, LLaMA 3 and similar ones.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace isonorm::tokenizers {

class Tokenizer {
 public:
  // `path`: tokenizer.json; or vocab.json with merges.txt in the same folder; or a folder with these files. If the
  // folder has both kinds, tokenizer.json is read.
  // Throws, naming the file and the entry, if a file is missing or an entry is not supported; if ids collide or are
  // 2^32 or more; if the id of an added token is not the id that the package `tokenizers` gives it
  // (io/tokenizers/tokenizer_file.h); or if a merge names an unknown token.
  explicit Tokenizer(const std::string& path);
  // Makes a tokenizer from the text of a tokenizer.json, such as json_of() returns. Throws, naming the entry.
  static Tokenizer of_json(std::string_view json);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;

  // The ids of the special added tokens that end a text, in increasing order. They are recognised by the names that
  // published models use: <|endoftext|>, <|end_of_text|>, <|eot_id|>, <|im_end|>, </s>, <eos>.
  const std::vector<int64_t>& end_tokens() const;

  // The largest id plus 1. Some smaller ids may have no token.
  int64_t vocab() const;

  // Encodes a text like encode(text, add_special_tokens=False) of the package `tokenizers`, and passes the ids to
  // `take` word by word, in order. Added tokens are found first; the text between them is normalized if the file says
  // so and split into words, whose bytes are merged. A run of invalid UTF-8 is a word. Throws if a byte is not a token,
  // if a word is longer than 16 MiB, or if a pattern takes too many steps. Not thread-safe: it caches the ids of words.
  void encode(std::string_view text, const std::function<void(std::span<const uint32_t> ids)>& take);
  std::vector<uint32_t> encode(std::string_view text);

  // The bytes of a token. The view is valid as long as the tokenizer lives. Throws if no token has the id.
  std::string_view bytes_of(int64_t id) const;
  // The tokens' bytes, joined. They equal the text if the ids come from encode() and the file neither normalizes
  // nor strips white space.
  std::string decode(std::span<const uint32_t> ids) const;

 private:
  struct Parts;
  explicit Tokenizer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// The files that Tokenizer(path) may read: `path`; also merges.txt if `path` is vocab.json; and the files in `path` if
// it is a folder.
std::vector<std::string> files_of(const std::string& path);

// The text of the tokenizer.json that Tokenizer(path) would read, for storing it in another file. Throws if the
// constructor would, if the text is longer than `limit` bytes, or if `path` names vocab.json with merges.txt, which are
// two files.
std::string json_of(const std::string& path, int64_t limit);

}  // namespace isonorm::tokenizers
