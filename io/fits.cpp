#include "io/fits.h"

#include <unistd.h>

#include <cmath>

#include "core/error.h"
#include "core/printed.h"
#include "core/system/foreign_text.h"

namespace isonorm::io {

void check_fits(int64_t bytes, std::string_view what) {
  const int64_t memory = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  check(bytes <= memory, printable(what, 200), " takes ", bytes, " bytes, this machine has ", memory);
}

float narrowed_to_f32(double x, std::string_view what) {
  const auto y = static_cast<float>(x);
  check(!std::isfinite(x) || (std::isfinite(y) && (x == 0 || y != 0)), what, " is ", shortest(x), ", which is ",
        shortest(static_cast<double>(y)), " in f32");
  return y;
}

uint32_t narrowed_to_u32(int64_t x, std::string_view what) {
  check(x >= 0 && x <= int64_t{UINT32_MAX}, what, " is ", x, ", expected 0 to ", UINT32_MAX);
  return static_cast<uint32_t>(x);
}

}  // namespace isonorm::io
