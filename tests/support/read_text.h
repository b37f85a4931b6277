// Reads a file as a string.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include "core/error.h"

namespace isonorm::test {

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  check_io(file.good(), "cannot read ", path, " (is the project's root the working directory?)");
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace isonorm::test
