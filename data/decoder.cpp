#include "data/decoder.h"

#include <cstdio>

#include "data/picture.h"

namespace isonorm::data {

void DecoderReport::fail(const char* why) {
  std::snprintf(why_, sizeof why_, "%s", why);
  longjmp(failed_, 1);
}

void DecoderReport::warn(const char* why) {
  if (warning_[0] == 0) std::snprintf(warning_, sizeof warning_, "%s", why);
}

Tensor picture_of(int64_t height, int64_t width, int64_t most) {
  check(height > 0 && width > 0 && height <= kMostPixels / width, "a picture of ", width, " x ", height,
        " pixels, expected 1 to ", kMostPixels);
  check(height * width <= most, "a picture of ", width, " x ", height, " pixels, a file of its size holds at most ",
        most);
  return empty({height, width, 3}, {DType::u8});
}

}  // namespace isonorm::data
