// Makes PNG files, for tests that read pictures.
#pragma once

#include <zlib.h>

#include <array>
#include <functional>

#include "tests/support/gzip.h"

using Colour = std::array<uint8_t, 3>;

// 8-bit RGB. colour(y, x): of a pixel.
inline std::vector<uint8_t> png(uint32_t height, uint32_t width,
                                const std::function<Colour(uint32_t, uint32_t)>& colour) {
  std::vector<uint8_t> file = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  const auto number = [](std::vector<uint8_t>& to, uint32_t n) {
    for (int shift = 24; shift >= 0; shift -= 8) to.push_back(static_cast<uint8_t>(n >> shift));
  };
  const auto chunk = [&](const char* kind, const std::vector<uint8_t>& data) {
    number(file, static_cast<uint32_t>(data.size()));
    const size_t begin = file.size();
    file.insert(file.end(), kind, kind + 4);
    file.insert(file.end(), data.begin(), data.end());
    number(file, static_cast<uint32_t>(crc32(0, &file[begin], static_cast<uInt>(file.size() - begin))));
  };
  std::vector<uint8_t> head, lines;
  number(head, width), number(head, height);
  head.insert(head.end(), {8, 2, 0, 0, 0});
  for (uint32_t y = 0; y < height; ++y) {
    lines.push_back(0);  // the filter
    for (uint32_t x = 0; x < width; ++x) {
      const Colour c = colour(y, x);
      lines.insert(lines.end(), c.begin(), c.end());
    }
  }
  chunk("IHDR", head), chunk("IDAT", deflated(lines, 15)), chunk("IEND", {});
  return file;
}
