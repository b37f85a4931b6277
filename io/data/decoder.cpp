#include "io/data/decoder.h"

#include <algorithm>

#include "io/data/picture.h"

namespace isonorm::data {

namespace {
template <size_t kSize> void keep(std::string_view why, char (&line)[kSize]) {
  *std::copy_n(why.begin(), std::min(why.size(), kSize - 1), line) = 0;
}
}  // namespace

void DecoderReport::fail(const char* why) {
  because(why);
  leave();
}

void DecoderReport::because(std::string_view why) { keep(why, why_); }

void DecoderReport::leave() { longjmp(failed_, 1); }

void DecoderReport::warn(const char* why) {
  if (warning_[0] == 0) keep(why, warning_);
}

Tensor picture_of(int64_t height, int64_t width, int64_t most) {
  check(height > 0 && width > 0 && height <= kMostPixels / width, "a picture of ", width, " x ", height,
        " pixels, expected 1 to ", kMostPixels);
  check(height * width <= most, "a picture of ", width, " x ", height, " pixels, a file of its size holds at most ",
        most);
  return empty({height, width, 3}, {DType::u8});
}

}  // namespace isonorm::data
