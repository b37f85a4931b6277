#include "io/event_file.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <vector>

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

// The bytes of a number, little-endian.
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

// Encoded protobuf fields: varints (whole), f64 and f32 (number), and length-delimited strings or messages (within).
std::string key(int field, int wire) { return varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire)); }
std::string whole(int field, int64_t n) { return key(field, 0) + varint(static_cast<uint64_t>(n)); }
std::string number(int field, double x) { return key(field, 1) + fixed(std::bit_cast<uint64_t>(x)); }
std::string number(int field, float x) { return key(field, 5) + fixed(std::bit_cast<uint32_t>(x)); }
std::string within(int field, std::string_view content) {
  return (key(field, 2) + varint(content.size())).append(content);
}

// A repeated field of doubles, packed.
std::string numbers(int field, const std::vector<double>& values) {
  std::string packed;
  for (const double x : values) packed += fixed(std::bit_cast<uint64_t>(x));
  return within(field, packed);
}

// A row-major copy on the CPU.
Tensor on_host(const Tensor& x, DType dtype) {
  const Tensor host = empty(x.shape(), {dtype});
  copy_into(host, x);
  return host;
}

std::vector<double> finite_entries(const Tensor& x) {
  const std::vector<double> all = on_host(x, DType::f64).to_vector<double>();
  std::vector<double> finite;
  std::ranges::copy_if(all, std::back_inserter(finite), [](double v) { return std::isfinite(v); });
  return finite;
}

// Pixels [height, width, channels], u8.
Tensor pixels_of(const Tensor& picture) {
  const Dims& shape = picture.shape();
  const bool fits = shape.rank == 3 && picture.numel() > 0 && (shape.v[2] == 1 || shape.v[2] == 3);
  check(fits, "image: the shape is ", shape, ", expected [height, width, 1 or 3]");
  check(picture.dtype() == DType::u8 || is_floating(picture.dtype()), "image: the dtype is ", picture.dtype(),
        ", expected u8 or a floating dtype");
  if (picture.dtype() == DType::u8) return on_host(picture, DType::u8);
  const Tensor wide = on_host(picture, DType::f64), bytes = empty(shape, {DType::u8});
  std::transform(wide.data<double>(), wide.data<double>() + wide.numel(), bytes.mutable_data<uint8_t>(), [](double v) {
    return v > 0 ? static_cast<uint8_t>(std::lround(255 * std::min(v, 1.0))) : uint8_t{0};
  });
  return bytes;
}

std::string png_of(const Tensor& bytes) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(bytes.size(0));
  image.width = static_cast<png_uint_32>(bytes.size(1));
  image.format = bytes.size(2) == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  const auto write = [&](void* to, png_alloc_size_t& n) {
    check(png_image_write_to_memory(&image, to, &n, 0, bytes.data<uint8_t>(), 0, nullptr) != 0,
          "image: libpng cannot write ", bytes.shape(), ": ", image.message);
  };
  png_alloc_size_t n = 0;
  write(nullptr, n);
  std::string png(n, '\0');
  write(png.data(), n);
  return png.substr(0, n);
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t c = ~0u;
  for (const char b : bytes) c = kTable[(c ^ static_cast<uint8_t>(b)) & 0xff] ^ (c >> 8);
  return ~c;
}

uint32_t masked_crc32c(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8u; }

EventFile::EventFile(const std::string& folder, int64_t first) {
  std::error_code ignored;  // opening the file reports the error
  std::filesystem::create_directories(folder, ignored);
  const double seconds = now();
  for (int n = 0; !file_ && n < 1000; ++n) {  // TensorBoard reads the files in the order of their names
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
  summary(step, within(1, tag) + number(2, static_cast<float>(value)));
}

void EventFile::histogram(std::string_view tag, int64_t step, const Tensor& values) {
  const std::vector<double> entries = finite_entries(values);
  if (entries.empty()) return;
  const auto [least, greatest] = std::ranges::minmax(entries);
  const size_t intervals = least < greatest ? 30 : 1;
  const double width = greatest / static_cast<double>(intervals) - least / static_cast<double>(intervals);
  std::vector<double> ends(intervals, greatest), counts(intervals);
  for (size_t i = 0; i + 1 < intervals; ++i) ends[i] = least + static_cast<double>(i + 1) * width;
  double sum = 0, squares = 0;
  for (const double x : entries) {
    const double place = width > 0 ? (x - least) / width : 0;
    ++counts[std::min(static_cast<size_t>(place), intervals - 1)];
    sum += x;
    squares += x * x;
  }
  const std::string histogram = number(1, least) + number(2, greatest) +
                                number(3, static_cast<double>(entries.size())) + number(4, sum) + number(5, squares) +
                                numbers(6, ends) + numbers(7, counts);
  summary(step, within(1, tag) + within(5, histogram));
}

void EventFile::image(std::string_view tag, int64_t step, const Tensor& picture) {
  const Tensor bytes = pixels_of(picture);
  const std::string image =
      whole(1, bytes.size(0)) + whole(2, bytes.size(1)) + whole(3, bytes.size(2)) + within(4, png_of(bytes));
  summary(step, within(1, tag) + within(4, image));
}

void EventFile::summary(int64_t step, const std::string& value) {
  write(number(1, now()) + whole(2, step) + within(5, within(1, value)));
}

void EventFile::write(const std::string& event) {
  const std::string length = fixed(uint64_t{event.size()});
  const std::string record = length + fixed(masked_crc32c(length)) + event + fixed(masked_crc32c(event));
  const bool ok = std::fwrite(record.data(), 1, record.size(), file_) == record.size() && std::fflush(file_) == 0;
  check_io(ok, path_, ": writing failed: ", std::strerror(errno));
}

}  // namespace isonorm::io
