#include "tests/support/declarations.h"

#include <filesystem>
#include <regex>

#include "tests/support/read_text.h"

namespace isonorm::test {
namespace {

std::string without_comments(const std::string& source) {
  return std::regex_replace(source, std::regex("//[^\n]*|#[^\n]*"), "");
}

std::string one_line(const std::string& s) {
  const std::string spaced = std::regex_replace(s, std::regex("\\s+"), " ");
  return std::regex_replace(spaced, std::regex("^ | $"), "");
}

}  // namespace

std::vector<Declaration> declarations_in(const std::string& source, const std::string& header) {
  static const std::regex function("(?:inline )?[\\w:<>]+ (\\w+)\\((.*)\\)"), scope("namespace ([\\w:]+)");
  std::vector<Declaration> found;
  std::vector<std::string> scopes;  // open braces: the name of a namespace, or empty for other braces
  std::string statement;
  int parentheses = 0;
  for (char c : without_comments(source)) {
    parentheses += (c == '(') - (c == ')');
    if (parentheses > 0 || (c != ';' && c != '{' && c != '}')) {
      statement += c;
      continue;
    }
    const std::string text = one_line(statement);
    statement.clear();
    std::smatch m;
    const bool plain = scopes.size() == 1 && scopes[0] == "isonorm";
    const bool composition = scopes.size() == 2 && scopes[1] == "reference";
    if (c != '}' && (plain || composition) && std::regex_match(text, m, function)) {
      const std::string parameters = std::regex_replace(m[2].str(), std::regex("const Tensor& "), "");
      found.push_back({(composition ? "reference::" : "") + m[1].str(), m[1].str() + "(" + parameters + ")", header});
    }
    if (c == '{') scopes.push_back(std::regex_match(text, m, scope) ? m[1].str() : "");
    if (c == '}' && !scopes.empty()) scopes.pop_back();
  }
  return found;
}

std::vector<Declaration> public_functions() {
  std::vector<Declaration> all;
  for (const char* folder : {"autograd/ops", "autograd/fused"})
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string header = entry.path().generic_string();
      if (!header.ends_with(".h")) continue;
      for (Declaration& d : declarations_in(read_text(header), header)) all.push_back(std::move(d));
    }
  return all;
}

}  // namespace isonorm::test
