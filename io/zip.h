// Internal: zip archives. A reader believes nothing: what the archive says of its members is checked against the size of
// the file and against each other before memory is taken for the first.
// Source: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, sections 4.3.7 and 4.3.12 to 4.3.16, 4.5.3.
#pragma once

#include <string>
#include <vector>

#include "core/system/file.h"

namespace isonorm::io {

struct ZipMember {
  std::string name;
  bool deflated = false;         // else stored
  uint32_t crc = 0;              // of the bytes as they were
  int64_t packed = 0, size = 0;  // bytes in the file, and as they were
  int64_t begin = 0;             // of the first in the file
};

// The members in the order of the directory, with zip64's sizes where they are there. Throws (invalid) where the file is no
// archive that ends with its directory and a comment, on encryption and methods other than stored and deflated, on a
// directory of over 64 MiB, on members that overlap or leave the file, and on sizes that deflate cannot reach.
std::vector<ZipMember> zip_members(const Bytes& file);

// The bytes of a member as they were. Throws (invalid) where they are more than this machine's memory, damaged, or have
// another CRC-32 than the directory says; 0 says nothing (torch.serialization.set_crc32_options).
std::vector<uint8_t> unzipped(const Bytes& file, const ZipMember& member);

}  // namespace isonorm::io
