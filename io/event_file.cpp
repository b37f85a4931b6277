#include "io/event_file.h"

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "core/printed.h"

namespace isonorm::io {
namespace {

constexpr std::array<uint32_t, 256> kTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ (c & 1 ? 0x82f63b78u : 0);
    table[i] = c;
  }
  return table;
}();

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

// The bytes of a number, the least first.
template <class T> std::string fixed(T value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

std::string varint(uint64_t n) {
  std::string bytes;
  for (; n >= 0x80; n >>= 7) bytes += static_cast<char>(n | 0x80);
  return bytes + static_cast<char>(n);
}

// Fields of a message by number: whole numbers, numbers of 8 and 4 bytes, words or messages.
std::string key(int field, int wire) { return varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire)); }
std::string whole(int field, int64_t n) { return key(field, 0) + varint(static_cast<uint64_t>(n)); }
std::string number(int field, double x) { return key(field, 1) + fixed(std::bit_cast<uint64_t>(x)); }
std::string number(int field, float x) { return key(field, 5) + fixed(std::bit_cast<uint32_t>(x)); }
std::string within(int field, std::string_view content) {
  return (key(field, 2) + varint(content.size())).append(content);
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t c = ~0u;
  for (const char b : bytes) c = kTable[(c ^ static_cast<uint8_t>(b)) & 0xff] ^ (c >> 8);
  return ~c;
}

uint32_t masked_crc32c(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8u; }

EventFile::EventFile(const std::string& folder, int64_t first) {
  std::error_code ignored;  // a file says what is wrong
  std::filesystem::create_directories(folder, ignored);
  const double seconds = now();
  for (int n = 0; !file_ && n < 1000; ++n) {  // TensorBoard takes the files by name
    path_ = text(folder, printed("/events.out.tfevents.%010.0f.isonorm.%03d", seconds, n));
    file_ = std::fopen(path_.c_str(), "wbxe");
    if (!file_ && errno != EEXIST) break;
  }
  check_io(file_ != nullptr, path_, ": cannot be written: ", std::strerror(errno));
  write(number(1, seconds) + within(3, "brain.Event:2"));
  write(number(1, seconds) + whole(2, first) + within(7, whole(1, 1)));  // SessionLog.START
}

EventFile::~EventFile() {
  if (file_) std::fclose(file_);
}

void EventFile::scalar(std::string_view tag, int64_t step, double value) {
  const std::string entry = within(1, tag) + number(2, static_cast<float>(value));
  write(number(1, now()) + whole(2, step) + within(5, within(1, entry)));
}

void EventFile::write(const std::string& event) {
  const std::string length = fixed(uint64_t{event.size()});
  const std::string record = length + fixed(masked_crc32c(length)) + event + fixed(masked_crc32c(event));
  const bool ok = std::fwrite(record.data(), 1, record.size(), file_) == record.size() && std::fflush(file_) == 0;
  check_io(ok, path_, ": writing failed: ", std::strerror(errno));
}

}  // namespace isonorm::io
