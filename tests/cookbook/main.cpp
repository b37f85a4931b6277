// Runs the recipes of docs/cookbook.md and docs/saving.md, each in an empty folder, and compares the lines that they
// print with the page.
// usage: cookbook [part of a title]
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "tests/cookbook/check.h"

namespace cookbook {

static std::vector<Recipe>& recipes() {
  static std::vector<Recipe> all;
  return all;
}

Recipe::Recipe(std::string page, std::string title, int line, void (*run)(), std::vector<std::string> printed)
    : page(std::move(page)), title(std::move(title)), line(line), run(run), printed(std::move(printed)) {
  recipes().push_back(*this);
}

static std::vector<std::string> lines_of(const Recipe& recipe) {
  std::ostringstream out;
  std::streambuf* const before = std::cout.rdbuf(out.rdbuf());
  std::string error;
  try {
    recipe.run();
  } catch (const std::exception& e) {
    error = std::string("throws: ") + e.what();
  }
  std::cout.rdbuf(before);
  if (!error.empty()) out << error << '\n';
  std::vector<std::string> lines;
  std::istringstream in(out.str());
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

static bool check(const Recipe& recipe) {
  const std::vector<std::string> lines = lines_of(recipe);
  bool same = lines.size() == recipe.printed.size();
  for (size_t i = 0; i < std::max(lines.size(), recipe.printed.size()); ++i) {
    const std::string printed = i < lines.size() ? lines[i] : "(nothing)";
    const std::string page = i < recipe.printed.size() ? recipe.printed[i] : "(nothing)";
    if (printed == page) continue;
    same = false;
    std::cout << "docs/" << recipe.page << ':' << recipe.line << ": " << recipe.title << "\n  the page says  " << page
              << "\n  it prints      " << printed << '\n';
  }
  return same;
}

}  // namespace cookbook

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("cookbook." + std::to_string(::getpid()));
  int run = 0, wrong = 0;
  for (const cookbook::Recipe& recipe : cookbook::recipes()) {
    if (argc > 1 && recipe.title.find(argv[1]) == std::string::npos) continue;
    const fs::path own = folder / std::to_string(++run);
    fs::create_directories(own);
    fs::current_path(own);
    if (!cookbook::check(recipe)) ++wrong;
  }
  fs::current_path("/");
  fs::remove_all(folder);
  std::cout << run << " recipes, " << wrong << " print something else\n";
  return run > 0 && wrong == 0 ? 0 : 1;
}
