#include "io/data/text.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "core/error.h"
#include "core/formulas/philox.h"

namespace isonorm::data {

Text::Text(const std::string& path, uint64_t seed, double held_out, const Alphabet& alphabet)
    : Text(open_bytes(path), seed, held_out, alphabet) {}

Text::Text(const Bytes& bytes, uint64_t seed, double held_out, const Alphabet& alphabet)
    : alphabet_(alphabet), seed_(seed) {
  const auto tokens = std::make_shared<std::vector<uint8_t>>(read_all(bytes, kTextLimit));
  const Scope scope(bytes.name);
  check(!tokens->empty(), "the text is empty");
  length_ = std::ssize(*tokens);
  hold_out(held_out);
  int64_t first[256];  // position of each byte's first occurrence
  std::fill(std::begin(first), std::end(first), -1);
  for (int64_t i = length_ - 1; i >= 0; --i) first[(*tokens)[i]] = i;
  if (alphabet_.empty()) {
    std::string all;
    for (int c = 0; c < 256; ++c)
      if (first[c] >= 0) all += static_cast<char>(c);
    alphabet_ = Alphabet(all);
  }
  for (int c = 0; c < 256; ++c)
    check(first[c] < 0 || alphabet_.id(static_cast<uint8_t>(c)) >= 0, "byte ", c, " at position ", first[c],
          " is none of the ", alphabet_.size(), " bytes that the weights were trained on");
  vocab_ = alphabet_.size();
  for (uint8_t& c : *tokens) c = static_cast<uint8_t>(alphabet_.id(c));
  read_ = [tokens](int64_t first, int64_t n, int64_t* to) { std::copy_n(tokens->begin() + first, n, to); };
}

std::string TokenFile::bytes_of(std::span<const uint32_t> ids) const {
  std::string all;
  for (const uint32_t id : ids)
    for (int64_t i = 0; i < isonorm::data::bytes_of(width); ++i) all += static_cast<char>(id >> 8 * i);
  return all;
}

Text::Text(const TokenFile& file, uint64_t seed, double held_out) : Text(open_bytes(file.path), file, seed, held_out) {}

Text::Text(const Bytes& bytes, const TokenFile& file, uint64_t seed, double held_out)
    : vocab_(file.vocab), seed_(seed) {
  const Scope scope(bytes.name);
  check(vocab_ >= 1 && vocab_ <= int64_t{1} << 32, "a vocabulary of ", vocab_, ", expected 1 to ", int64_t{1} << 32);
  const int64_t size = bytes_of(file.width);
  check(bytes.size > 0, "the file of token ids is empty");
  check(bytes.size % size == 0, "the file has ", bytes.size, " bytes, ids of ", name_of(file.width), " have ", size,
        " each");
  length_ = bytes.size / size;
  hold_out(held_out);
  read_ = [bytes, size](int64_t first, int64_t n, int64_t* to) {
    std::vector<uint8_t> raw(static_cast<size_t>(n * size));
    bytes.read(first * size, raw.data(), n * size);
    for (const uint8_t* at = raw.data(); n > 0; --n, at += size) {
      uint32_t id = 0;
      for (int64_t i = 0; i < size; ++i) id |= uint32_t{at[i]} << 8 * i;
      *to++ = id;
    }
  };
  std::vector<int64_t> piece(1 << 16);
  for (int64_t first = 0; first < length_; first += std::ssize(piece)) {
    const int64_t n = std::min(std::ssize(piece), length_ - first);
    read_(first, n, piece.data());
    for (int64_t i = 0; i < n; ++i)
      check(piece[i] < vocab_, "token ", first + i, ", read as ", name_of(file.width), ", is ", piece[i],
            ", expected 0 to ", vocab_ - 1);
  }
}

void Text::hold_out(double part) {
  check(part >= 0 && part <= 1, "text: held out is the part ", part, ", expected 0 to 1");
  shown_ = length_ - static_cast<int64_t>(part * static_cast<double>(length_));
}

TextBatch Text::batch(int64_t rows, int64_t length, int64_t step) const {
  check(rows >= 1 && length >= 1 && step >= 0, "text: batch of ", rows, " rows of length ", length, " at step ", step,
        ", expected at least 1, 1 and 0");
  check(length < shown_, "text: windows of length ", length, " and one token more, the text has ", shown_, " and ",
        held_out_length(), " held out");
  return windows(rows, length, [&](int64_t r) { return below(shown_ - length, philox(seed_, r, step).wide(0)); });
}

int64_t Text::held_out_windows(int64_t length) const {
  check(length >= 1, "text: windows of length ", length, ", expected at least 1");
  return std::max<int64_t>(0, held_out_length() - 1) / length;
}

int64_t Text::all_held_out_windows(int64_t length) const {
  const int64_t windows = held_out_windows(length);
  return windows + (windows * length < held_out_length() - 1);
}

TextBatch Text::held_out_rows(int64_t begin, int64_t rows, int64_t length) const {
  const int64_t count = all_held_out_windows(length);
  check(rows >= 1 && begin >= 0 && begin < count && rows <= count - begin, "text: ", rows, " windows from ", begin,
        " on, the held-out part has ", count);
  return windows(rows, length, [&](int64_t r) { return shown_ + (begin + r) * length; });
}

// Row r begins at token start(r) and ends at the latest at the end of the text.
template <class Start> TextBatch Text::windows(int64_t rows, int64_t length, Start start) const {
  TextBatch batch{empty({rows, length}, {DType::i64}), empty({rows, length}, {DType::i64})};
  int64_t* x = batch.x.mutable_data<int64_t>();
  int64_t* y = batch.y.mutable_data<int64_t>();
  std::vector<int64_t> window(static_cast<size_t>(length) + 1);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t first = start(r), n = std::min(length, length_ - 1 - first);
    read_(first, n + 1, window.data());
    x = std::fill_n(std::copy_n(window.begin(), n, x), length - n, 0);
    y = std::fill_n(std::copy_n(window.begin() + 1, n, y), length - n, kNoLabel);
  }
  return batch;
}

namespace {

constexpr const char* kNouns[] = {"the stream", "the reader", "the writer",   "the norm",
                                  "the head",   "the mean",   "the gradient", "the loss"};
constexpr const char* kVerbs[] = {"follows", "carries", "moves", "keeps", "reads", "scales"};
constexpr const char* kEnds[] = {".\n", " again.\n", " at every step.\n", " and "};

}  // namespace

std::string made_text(uint64_t seed, int64_t length) {
  check(length >= 0, "made_text: length ", length, ", expected at least 0");
  std::string out;
  for (uint64_t sentence = 0; static_cast<int64_t>(out.size()) < length; ++sentence) {
    const auto random = philox(seed, sentence, /*subsequence=*/0x7e47);
    out += kNouns[random.word[0] % std::size(kNouns)];
    out += ' ';
    out += kVerbs[random.word[1] % std::size(kVerbs)];
    out += ' ';
    out += kNouns[random.word[2] % std::size(kNouns)];
    out += kEnds[random.word[3] % std::size(kEnds)];
  }
  out.resize(static_cast<size_t>(length));
  return out;
}

}  // namespace isonorm::data
