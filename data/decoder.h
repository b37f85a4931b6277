// Internal: how the decoders of pictures call C libraries, which report a failure by a function that must not return.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

#include "core/error.h"
#include "core/tensor.h"

namespace isonorm::data {

// The errors and warnings of one decoder. Calls of the library run inside run(); the library's functions for errors call fail(), those for
// warnings call warn().
class DecoderReport {
 public:
  // Calls f(). Throws Error (invalid) "what: why" if f calls fail(why). Nothing in f may need a destructor: fail() jumps over it.
  template <class F> void run(const char* what, const F& f) {
    if (setjmp(failed_) != 0) check(false, what, ": ", why_);
    f();
  }
  [[noreturn]] void fail(const char* why) {
    keep(why, why_);
    longjmp(failed_, 1);
  }
  void warn(const char* why) {
    if (warning_[0] == 0) keep(why, warning_);
  }
  const char* warning() const { return warning_; }  // the first one; empty if there was none

 private:
  using Line = char[256];
  static void keep(const char* from, Line& to) { std::snprintf(to, sizeof to, "%s", from); }

  jmp_buf failed_;
  Line why_ = {}, warning_ = {};
};

// Room for a picture: u8 [height, width, 3]. Throws (invalid) if it has no pixels, or more than `most`, the pixels that a file of its size can
// hold, or kMostPixels.
Tensor picture_of(int64_t height, int64_t width, int64_t most);

// Decoders of the two formats, for read_picture(): `file` is the whole file. `warning` gets the library's first warning.
Tensor read_png(std::span<const uint8_t> file, std::string& warning);
Tensor read_jpeg(std::span<const uint8_t> file, std::string& warning);

}  // namespace isonorm::data
