// Internal: zip archives. The reader trusts nothing: it checks all numbers of the archive against the size of the file
// and against each other before memory is allocated.
// Source: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, sections 4.3.7 and 4.3.12 to 4.3.16, 4.5.3.
#pragma once

#include <string>
#include <vector>

#include "core/system/file.h"

namespace isonorm::io {

struct ZipMember {
  std::string name;
  bool deflated = false;         // else stored
  uint32_t crc = 0;              // of the uncompressed bytes
  int64_t packed = 0, size = 0;  // bytes in the file, and uncompressed
  int64_t begin = 0;             // offset of its data in the file
};

// The members in the order of the directory, with sizes from zip64 if present. Throws (invalid) if the file does not
// end with a directory and a comment, if a member is encrypted or compressed by another method than deflate, if the
// directory is over 64 MiB, if members overlap or leave the file, and if deflate cannot reach a size.
std::vector<ZipMember> zip_members(const Bytes& file);

// The uncompressed bytes of a member. Throws (invalid) if they exceed this machine's memory, are damaged, or do not
// match the directory's CRC-32. A CRC-32 of 0 is not checked (torch.serialization.set_crc32_options).
std::vector<uint8_t> unzipped(const Bytes& file, const ZipMember& member);

}  // namespace isonorm::io
