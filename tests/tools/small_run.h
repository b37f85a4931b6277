// A training of a language model so small that it runs within a second.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace isonorm {

inline bool contains(const std::string& s, const std::string& part) { return s.find(part) != std::string::npos; }

inline std::string read(const std::string& path) {
  std::stringstream s;
  s << std::ifstream(path, std::ios::binary).rdbuf();
  return s.str();
}

// A folder with a text of a few characters, removed at the end.
struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("isonorm_tools_" + std::to_string(std::rand()));
  Folder() {
    std::filesystem::create_directories(path);
    std::ofstream text(path / "text.txt");
    for (int i = 0; i < 400; ++i) text << "abcd efg"[i * i % 7] << "xyz "[i % 4];
  }
  ~Folder() { std::filesystem::remove_all(path); }
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
