// The bytes that a text may have, each with an id. A model of bytes has one token for each.
#pragma once

#include <string>
#include <string_view>

#include "core/tensor.h"

namespace isonorm::data {

class Alphabet {
 public:
  Alphabet() : Alphabet(std::string_view()) {}  // none: the ids are not bytes
  // The byte at position i has the id i. Throws if a byte occurs twice.
  explicit Alphabet(std::string_view bytes);
  // Reads the result of written(). Throws on any other text.
  static Alphabet read(std::string_view written);

  bool empty() const { return bytes_.empty(); }
  int64_t size() const { return std::ssize(bytes_); }
  char byte(int64_t id) const { return bytes_[static_cast<size_t>(id)]; }  // id: from 0 to below size()
  int id(uint8_t byte) const { return id_of_[byte]; }                      // -1: the byte has none

  // Bytes to ids, i64 [n]. Throws if a byte has no id; the message names the first one.
  Tensor encode(std::string_view bytes) const;
  // Ids of any shape, in row-major order, to bytes. Throws if an id is outside of [0, size()) or the dtype is not i64.
  std::string decode(const Tensor& ids) const;

  // Two hexadecimal digits for each byte, since the metadata of a file is text.
  std::string written() const;
  // This alphabet, followed by the bytes of `more` that it lacks.
  Alphabet with(const Alphabet& more) const;
  bool operator==(const Alphabet& other) const { return bytes_ == other.bytes_; }

 private:
  void check_there() const;

  std::string bytes_;
  int id_of_[256];
};

}  // namespace isonorm::data
