// Checks of numbers in files: data that claim more memory than the machine has, and numbers that do not fit a smaller
// type, are refused.
#pragma once

#include <cstdint>
#include <string_view>

namespace isonorm::io {

// Throws (invalid), naming `what`, if `bytes` is more than this machine's memory. The file's size is no protection: a
// sparse file takes no room on the disk.
void check_fits(int64_t bytes, std::string_view what);

// x rounded to f32. Throws "what is 1e+39, which is inf in f32" if a finite x overflows, or if an x other than 0 rounds
// to 0.
float narrowed_to_f32(double x, std::string_view what);

// x itself. Throws "what is 4294967304, expected 0 to 4294967295" if x is outside this range.
uint32_t narrowed_to_u32(int64_t x, std::string_view what);

}  // namespace isonorm::io
