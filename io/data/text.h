// A text as a sequence of tokens for a language model: the bytes of a file, or the ids of a tokenizer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/system/file.h"
#include "core/tensor.h"
#include "io/data/alphabet.h"
#include "io/data/row_loader.h"
#include "io/data/text_content.h"

namespace isonorm::data {

// Largest text that is read into memory: 1 GiB.
inline constexpr int64_t kTextLimit = int64_t{1} << 30;

struct TextBatch {
  Tensor x;  // i64 [rows, length]: tokens
  Tensor y;  // i64 [rows, length]: y[r][t] is the token after x[r][t]
};

// A file of little-endian token ids without a header, as nanoGPT writes it.
struct TokenFile {
  std::string path;
  int64_t vocab;
  IdWidth width = vocab <= 1 << 16 ? IdWidth::u16 : IdWidth::u32;

  std::string bytes_of(std::span<const uint32_t> ids) const;  // in the file's format
};

class Text {
 public:
  // Reads a file of bytes. alphabet: the bytes that may occur; empty: the bytes of the file, in ascending order.
  // held_out, from 0 to 1: share of the text, at the end, that batch() never uses. Throws if the file cannot be read,
  // is empty, is larger than kTextLimit or has a byte that is not in the alphabet.
  explicit Text(const std::string& path, uint64_t seed = 0, double held_out = 0, const Alphabet& alphabet = {});
  explicit Text(const Bytes& bytes, uint64_t seed = 0, double held_out = 0, const Alphabet& alphabet = {});
  // Checks the whole file once, in pieces, and later reads only the windows of a batch. Throws if the file cannot be
  // read, is empty, ends within an id, or has an id that is not below `vocab`.
  explicit Text(const TokenFile& file, uint64_t seed = 0, double held_out = 0);
  // The same for an open file; `bytes` has the name for errors.
  Text(const Bytes& bytes, const TokenFile& file, uint64_t seed = 0, double held_out = 0);

  int64_t vocab() const { return vocab_; }
  int64_t length() const { return length_; }
  int64_t held_out_length() const { return length() - shown_; }

  // `rows` random windows of length + 1 tokens of the text that is not held out; depends only on text, seed and step.
  // Throws if that text is not longer than `length`, or an argument is out of range.
  TextBatch batch(int64_t rows, int64_t length, int64_t step) const;
  // Number of batches in an epoch: tokens that are not held out / (rows length), at least 1.
  int64_t batches(int64_t rows, int64_t length) const {
    return std::max<int64_t>(1, shown_ / std::max<int64_t>(1, checked_mul(rows, length, "text: batch")));
  }

  // Number of windows of length + 1 tokens in the held-out part. Each begins with the last token of the previous one,
  // so every token but the first is predicted once, except for a rest that is shorter than a window.
  int64_t held_out_windows(int64_t length) const;
  // The same, plus one window for the rest if there is one.
  int64_t all_held_out_windows(int64_t length) const;
  // The windows [begin, begin + rows) of all_held_out_windows(). A short last window is padded: x with 0, y with
  // kNoLabel. Throws if there are not that many windows.
  TextBatch held_out_rows(int64_t begin, int64_t rows, int64_t length) const;

  // The bytes that have ids; empty if the text consists of token ids.
  const Alphabet& alphabet() const { return alphabet_; }
  Tensor encode(std::string_view bytes) const { return alphabet_.encode(bytes); }
  std::string decode(const Tensor& tokens) const { return alphabet_.decode(tokens); }

 private:
  template <class Start> TextBatch windows(int64_t rows, int64_t length, Start start) const;
  void hold_out(double part);

  std::function<void(int64_t first, int64_t n, int64_t* to)> read_;  // copies tokens [first, first + n)
  int64_t length_ = 0, vocab_ = 0;
  Alphabet alphabet_;
  uint64_t seed_;
  int64_t shown_ = 0;  // tokens before the held-out part
};

// The batches of a text.
using TextLoader = RowLoader<Text>;

// `length` bytes of short lower-case sentences over a small vocabulary; depends only on the arguments. A small model
// learns spelling and word order from it within a hundred steps. Throws if length is negative.
std::string made_text(uint64_t seed, int64_t length);

}  // namespace isonorm::data
