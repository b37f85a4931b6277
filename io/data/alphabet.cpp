#include "io/data/alphabet.h"

#include <algorithm>

#include "core/system/foreign_text.h"

namespace isonorm::data {
namespace {
constexpr std::string_view kDigits = "0123456789abcdef";
}

Alphabet::Alphabet(std::string_view bytes) : bytes_(bytes) {
  std::fill(std::begin(id_of_), std::end(id_of_), -1);
  for (size_t i = 0; i < bytes.size(); ++i) {
    int& id = id_of_[static_cast<uint8_t>(bytes[i])];
    check(id < 0, "alphabet: byte ", static_cast<uint8_t>(bytes[i]), " has the ids ", id, " and ", i);
    id = static_cast<int>(i);
  }
}

Alphabet Alphabet::read(std::string_view written) {
  check(written.size() % 2 == 0 && written.size() <= 512 && written.find_first_not_of(kDigits) == written.npos,
        "alphabet: it is written as ", Shown{written}, ", expected two hexadecimal digits a byte, of at most 256");
  std::string bytes;
  for (size_t i = 0; i < written.size(); i += 2)
    bytes += static_cast<char>(kDigits.find(written[i]) << 4 | kDigits.find(written[i + 1]));
  return Alphabet(bytes);
}

Alphabet Alphabet::with(const Alphabet& more) const {
  std::string all = bytes_;
  for (char c : more.bytes_)
    if (id(static_cast<uint8_t>(c)) < 0) all += c;
  return Alphabet(all);
}

std::string Alphabet::written() const {
  std::string s;
  for (char c : bytes_)
    for (int half : {4, 0}) s += kDigits[static_cast<uint8_t>(c) >> half & 15];
  return s;
}

void Alphabet::check_there() const {
  check(!empty(), "text: it is of token ids; only their tokenizer turns bytes into ids and ids into bytes");
}

Tensor Alphabet::encode(std::string_view bytes) const {
  check_there();
  Tensor ids = isonorm::empty({std::ssize(bytes)}, {DType::i64});
  int64_t* to = ids.mutable_data<int64_t>();
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<uint8_t>(bytes[i]);
    check(id(byte) >= 0, "text: byte ", byte, " at position ", i, " is none of the ", size(), " bytes of the alphabet");
    to[i] = id(byte);
  }
  return ids;
}

std::string Alphabet::decode(const Tensor& ids) const {
  check_there();
  check(ids.dtype() == DType::i64, "text: tokens have dtype ", ids.dtype(), ", expected i64");
  std::string bytes;
  for (int64_t t : ids.to_vector<int64_t>()) {
    check(t >= 0 && t < size(), "text: token ", t, ", expected 0 to ", size() - 1);
    bytes += bytes_[static_cast<size_t>(t)];
  }
  return bytes;
}

}  // namespace isonorm::data
