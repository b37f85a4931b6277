// Compresses bytes like gzip, for tests that make files.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <span>
#include <vector>

// window: zlib's windowBits, which selects the header around the compressed bytes and the size of the window.
template <class Bytes = std::vector<uint8_t>> Bytes deflated(std::span<const uint8_t> bytes, int window) {
  z_stream z{};
  deflateInit2(&z, 9, Z_DEFLATED, window, 9, Z_DEFAULT_STRATEGY);
  Bytes out(deflateBound(&z, bytes.size()) + 64, 0);
  z.next_in = const_cast<Bytef*>(bytes.data());
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

inline std::vector<uint8_t> gzip(std::span<const uint8_t> bytes) { return deflated(bytes, 15 + 16); }
