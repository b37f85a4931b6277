// The recipes of docs/cookbook.md and what each prints. source.py writes the code that registers them.
#pragma once

#include <string>
#include <vector>

namespace cookbook {

struct Recipe {
  // line: of docs/cookbook.md. printed: the lines that `run` writes to std::cout.
  Recipe(std::string title, int line, void (*run)(), std::vector<std::string> printed);

  std::string title;
  int line;
  void (*run)();
  std::vector<std::string> printed;
};

}  // namespace cookbook
