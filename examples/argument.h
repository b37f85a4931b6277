// Reads a number and a device from the command line of an example.
#pragma once

#include <algorithm>
#include <charconv>
#include <string_view>

#include <isonorm/isonorm.h>

// Throws if the word is not a whole number >= 0.
inline int whole_number(std::string_view word) {
  int value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  isonorm::check(error == std::errc() && end == word.data() + word.size() && value >= 0, "\"", word,
                 "\" is not a whole number from 0 on");
  return value;
}

// Removes "--device cuda" or "--device cuda:1" from the words and returns this device; the CPU if there is none.
inline isonorm::Device take_device(int& argc, char** argv) {
  const auto at = std::find(argv + 1, argv + argc, std::string_view("--device"));
  if (at == argv + argc) return isonorm::kCpu;
  const std::string_view word = at + 1 < argv + argc ? at[1] : "";
  const auto device = isonorm::gpu::device_of(word);
  isonorm::check(device.has_value(), "--device \"", word, "\" is not cpu, cuda or cuda:N");
  const std::string why = isonorm::gpu::why_none();
  isonorm::check(*device == isonorm::kCpu || why.empty(), "--device ", *device, ": ", why);
  std::copy(at + 2, argv + argc, at);
  argc -= 2;
  return *device;
}
