// Internal: writes a message in protobuf's wire format. Source: protobuf.dev/programming-guides/encoding.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace isonorm::onnx {

class Message {
 public:
  Message& number(int field, int64_t x) { return tag(field, 0).varint(static_cast<uint64_t>(x)); }
  Message& real(int field, float x) {
    tag(field, 5);
    for (int i = 0; i < 4; ++i) bytes_.push_back(static_cast<char>(std::bit_cast<uint32_t>(x) >> (8 * i)));
    return *this;
  }
  Message& text(int field, std::string_view s) {
    begin(field, static_cast<int64_t>(s.size())).bytes_.append(s);
    return *this;
  }
  Message& message(int field, const Message& m) { return text(field, m.bytes_); }
  Message& append(const Message& fields) {
    bytes_ += fields.bytes_;
    return *this;
  }
  // Begins a field of `bytes` bytes, which the caller writes after this message's bytes.
  Message& begin(int field, int64_t bytes) { return tag(field, 2).varint(static_cast<uint64_t>(bytes)); }

  const std::string& bytes() const { return bytes_; }
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }

 private:
  Message& tag(int field, int type) { return varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(type)); }
  Message& varint(uint64_t x) {
    for (; x > 0x7f; x >>= 7) bytes_.push_back(static_cast<char>(x | 0x80));
    bytes_.push_back(static_cast<char>(x));
    return *this;
  }

  std::string bytes_;
};

}  // namespace isonorm::onnx
