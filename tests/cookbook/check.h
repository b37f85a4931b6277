// The recipes of docs/cookbook.md and docs/saving.md, and their outputs. source.py writes the code that registers them.
#pragma once

#include <string>
#include <vector>

namespace cookbook {

struct Recipe {
  // page: in docs/. line: of the page. printed: the lines that `run` writes to std::cout.
  Recipe(std::string page, std::string title, int line, void (*run)(), std::vector<std::string> printed);

  std::string page, title;
  int line;
  void (*run)();
  std::vector<std::string> printed;
};

}  // namespace cookbook
