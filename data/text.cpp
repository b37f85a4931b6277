#include "data/text.h"

#include <algorithm>

#include "core/philox.h"

namespace isonorm::data {

Text::Text(const std::string& path, uint64_t seed) : Text(open_bytes(path), seed) {}

Text::Text(const Bytes& bytes, uint64_t seed) : tokens_(read_all(bytes, kTextLimit)), seed_(seed) {
  check(!tokens_.empty(), bytes.name, ": the text is empty");
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
  check(length < this->length(), "text: windows of length ", length, " and one character more, the text has ",
        this->length());
  TextBatch batch{empty({rows, length}, {DType::i64}), empty({rows, length}, {DType::i64})};
  int64_t* x = batch.x.mutable_data<int64_t>();
  int64_t* y = batch.y.mutable_data<int64_t>();
  for (int64_t r = 0; r < rows; ++r) {
    const uint8_t* window = tokens_.data() + below(this->length() - length, philox(seed_, r, step).wide(0));
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
