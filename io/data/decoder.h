// Internal: how the decoders of pictures call C libraries, which report a failure by a function that must not return.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/tensor.h"

namespace isonorm::data {

// A decoder's errors and warnings. Calls of the library run inside run(). The library's error callback calls
// fail(), its warning callback calls warn().
class DecoderReport {
 public:
  // Calls f(). Throws Error (invalid) "what: why" if f calls fail(why). Nothing in f may need a destructor: fail()
  // jumps over it.
  template <class F> void run(const char* what, const F& f) {
    if (setjmp(failed_) != 0) check(false, what, ": ", why_);
    f();
  }
  [[noreturn]] void fail(const char* why);
  // fail() in two calls, for a caller whose reason is an object with a destructor: because() copies the text, the
  // caller destroys the object, leave() jumps out of f.
  void because(std::string_view why);
  [[noreturn]] void leave();
  void warn(const char* why);
  const char* warning() const { return warning_; }  // the first one; empty if there was none

 private:
  using Line = char[256];

  jmp_buf failed_;
  Line why_ = {}, warning_ = {};
};

// Room for a picture: u8 [height, width, 3]. Throws (invalid) if it has no pixels, more than `most` (the pixels that a
// file of its size can hold), or more than kMostPixels.
Tensor picture_of(int64_t height, int64_t width, int64_t most);

// JPEG files of 1, 3 or 4 components, by libjpeg-turbo: baseline, progressive or arithmetic.

// Decodes the file as read_picture() does (io/data/picture.h). warning: gets libjpeg-turbo's first warning, or becomes
// empty.
Tensor read_jpeg(std::span<const uint8_t> file, std::string& warning);

// Reads PNG files with libpng. Gamma, colour profiles and transparency are ignored: samples keep their stored
// values.

// Decodes the file as read_picture() (io/data/picture.h). warning: gets libpng's first warning, or becomes empty.
Tensor read_png(std::span<const uint8_t> file, std::string& warning);

}  // namespace isonorm::data
