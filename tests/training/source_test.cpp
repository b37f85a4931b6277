// What identifies the data of a training.
#include "training/source.h"

#include <filesystem>
#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
using namespace isonorm::training;

TEST_CASE("pairs are told from others whose two files are the same bytes cut elsewhere") {
  const TempFolder folder;
  const auto digest = [&](const char* name, const std::string& source, const std::string& target) {
    const std::string dir = folder / name;
    std::filesystem::create_directory(dir);
    std::ofstream(dir + "/source.txt") << source;
    std::ofstream(dir + "/target.txt") << target;
    return Source({.model = {kTranslator, {.width = 8, .depth = 1, .heads = 2}, {{"context", 8}}}, .data = dir})
        .sha256();
  };
  std::string source, target;  // twelve lines each, the source without a newline at its end
  for (int i = 0; i < 12; ++i) source += i < 11 ? "ab\n" : "ab", target += "cd\n";
  const std::string first = digest("a", source, target), again = digest("b", source, target),
                    cut = digest("c", source + target[0], target.substr(1));
  CHECK(first == again);
  CHECK(first != cut);
}
