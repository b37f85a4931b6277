#include "data/text.h"

#include <algorithm>

#include "core/formulas/philox.h"

namespace isonorm::data {

Text::Text(const std::string& path, uint64_t seed, double held_out) : Text(open_bytes(path), seed, held_out) {}

Text::Text(const Bytes& bytes, uint64_t seed, double held_out) : tokens_(read_all(bytes, kTextLimit)), seed_(seed) {
  check(!tokens_.empty(), bytes.name, ": the text is empty");
  check(held_out >= 0 && held_out < 1, "text: held out is the part ", held_out, ", expected 0 up to below 1");
  shown_ = length() - static_cast<int64_t>(held_out * static_cast<double>(length()));
  std::fill(std::begin(token_of_), std::end(token_of_), -1);
  for (uint8_t c : tokens_) token_of_[c] = 0;
  for (int c = 0; c < 256; ++c) {
    if (token_of_[c] < 0) continue;
    token_of_[c] = static_cast<int>(byte_of_.size());
    byte_of_ += static_cast<char>(c);
  }
  for (uint8_t& c : tokens_) c = static_cast<uint8_t>(token_of_[c]);
}

TextBatch Text::batch(int64_t rows, int64_t length, int64_t step) const {
  check(rows >= 1 && length >= 1 && step >= 0, "text: batch of ", rows, " rows of length ", length, " at step ", step,
        ", expected at least 1, 1 and 0");
  check(length < shown_, "text: windows of length ", length, " and one character more, the text has ", shown_, " and ",
        held_out_length(), " held out");
  return windows(rows, length, [&](int64_t r) { return below(shown_ - length, philox(seed_, r, step).wide(0)); });
}

int64_t Text::held_out_windows(int64_t length) const {
  check(length >= 1, "text: windows of length ", length, ", expected at least 1");
  return std::max<int64_t>(0, held_out_length() - 1) / length;
}

TextBatch Text::held_out_rows(int64_t begin, int64_t rows, int64_t length) const {
  const int64_t count = held_out_windows(length);
  check(rows >= 1 && begin >= 0 && begin < count && rows <= count - begin, "text: ", rows, " windows from ", begin,
        " on, the held-out part has ", count);
  return windows(rows, length, [&](int64_t r) { return shown_ + (begin + r) * length; });
}

// Row r has the tokens from start(r) on.
template <class Start> TextBatch Text::windows(int64_t rows, int64_t length, Start start) const {
  TextBatch batch{empty({rows, length}, {DType::i64}), empty({rows, length}, {DType::i64})};
  int64_t* x = batch.x.mutable_data<int64_t>();
  int64_t* y = batch.y.mutable_data<int64_t>();
  for (int64_t r = 0; r < rows; ++r) {
    const uint8_t* window = tokens_.data() + start(r);
    x = std::copy(window, window + length, x);
    y = std::copy(window + 1, window + 1 + length, y);
  }
  return batch;
}

Tensor Text::encode(std::string_view characters) const {
  Tensor tokens = empty({static_cast<int64_t>(characters.size())}, {DType::i64});
  int64_t* to = tokens.mutable_data<int64_t>();
  for (size_t i = 0; i < characters.size(); ++i) {
    const auto byte = static_cast<uint8_t>(characters[i]);
    check(token_of_[byte] >= 0, "text: byte ", byte, " at position ", i, " does not occur in the text");
    to[i] = token_of_[byte];
  }
  return tokens;
}

std::string Text::decode(const Tensor& tokens) const {
  check(tokens.dtype() == DType::i64, "text: tokens have dtype ", tokens.dtype(), ", expected i64");
  std::string characters;
  for (int64_t t : tokens.to_vector<int64_t>()) {
    check(t >= 0 && t < vocab(), "text: token ", t, ", expected 0 to ", vocab() - 1);
    characters += byte_of_[static_cast<size_t>(t)];
  }
  return characters;
}

}  // namespace isonorm::data
