// SHA-256 (FIPS 180-4), to identify data by content in a manifest. Not for secrets: memory is not cleared.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace isonorm::io {

class Sha256 {
 public:
  void update(std::string_view bytes);
  // The digest of the bytes so far, 64 hexadecimal digits. The object cannot be used afterwards.
  std::string hex();

 private:
  void compress(const uint8_t* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> block_{};
  uint64_t length_ = 0;  // bytes so far
};

// SHA-256 over the contents of the files, one after the other, in hexadecimal. Throws (ErrorKind::io), naming the file,
// if one cannot be read.
std::string sha256_of_files(const std::vector<std::string>& paths);

}  // namespace isonorm::io
