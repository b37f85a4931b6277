// A tokenizer of the Hugging Face hub whose tokens are pieces of bytes (byte-level BPE): those of GPT-2, GPT-NeoX, OLMo,
// LLaMA 3 and their like.
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
  // `path`: tokenizer.json; or vocab.json with merges.txt in the same folder; or a folder with one of these. If the folder has
  // both, tokenizer.json is read.
  // Throws, naming the file and the entry, if a file is missing or an entry is not supported; if ids collide or are 2^32 or
  // more; if the id of an added token is not the package's (tokenizers/tokenizer_file.h); or if a merge names no token.
  explicit Tokenizer(const std::string& path);
  // Makes a tokenizer from the text of a tokenizer.json, such as json_of() gives. Throws, naming the entry.
  static Tokenizer of_json(std::string_view json);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;

  // The ids of the special added tokens that end a text, by the names that published models give them: <|endoftext|>,
  // <|end_of_text|>, <|eot_id|>, <|im_end|>, </s>, <eos>. In order.
  const std::vector<int64_t>& end_tokens() const;

  // The largest id and 1. There may be ids below it that no token has.
  int64_t vocab() const;

  // Gives the ids of a text to `take`, in order, a word's at a time: those of encode(text, add_special_tokens=False) of the
  // package `tokenizers`. Added tokens are found where the text has them; what is between them is normalized where the file
  // says so and cut into words, whose bytes are merged. Bytes that are no UTF-8 are a word by themselves. Throws where a byte is no token, a
  // word has over 16 MiB, or a pattern takes too many steps. One thread at a time: it keeps the ids of words that it has seen.
  void encode(std::string_view text, const std::function<void(std::span<const uint32_t> ids)>& take);
  std::vector<uint32_t> encode(std::string_view text);

  // The bytes that a token stands for, which live as long as the tokenizer. Throws where no token has the id.
  std::string_view bytes_of(int64_t id) const;
  // Those of all, in order: the text, where its ids are encode()'s and its file does not normalize and strips no white space.
  std::string decode(std::span<const uint32_t> ids) const;

 private:
  struct Parts;
  explicit Tokenizer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// The files that Tokenizer(path) may read: `path`, also merges.txt if it is vocab.json, or the files in the folder `path`.
std::vector<std::string> files_of(const std::string& path);

// The text of the tokenizer.json that `path` means to the constructor, so that another file can hold it. Throws if the
// constructor would, if the text has more than `limit` bytes, or if `path` means vocab.json with merges.txt: they are two files.
std::string json_of(const std::string& path, int64_t limit);

}  // namespace isonorm::tokenizers
