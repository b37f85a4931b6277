// A training of a language model so small that it runs within a second.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"

namespace isonorm {

inline bool contains(const std::string& s, const std::string& part) { return s.find(part) != std::string::npos; }

inline std::string read(const std::string& path) {
  std::stringstream s;
  s << std::ifstream(path, std::ios::binary).rdbuf();
  return s.str();
}

// A folder with a text of a few characters, removed at the end.
struct Folder {
  TempFolder temporary;  // other runs of the tests have others
  std::filesystem::path path = temporary.path;
  Folder() {
    std::ofstream text(path / "text.txt");
    for (int i = 0; i < 400; ++i) text << "abcd efg"[i * i % 7] << "xyz "[i % 4];
  }
  std::string file(const std::string& name) const { return (path / name).string(); }
};

inline std::vector<std::string> small(const Folder& folder, const std::string& verb,
                                      const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {verb,        "--model",   "gpt",     "--data",  folder.file("text.txt"),
                                        "--width",   "8",         "--depth", "1",       "--heads",
                                        "2",         "--context", "8",       "--batch", "4",
                                        "--threads", "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace isonorm
