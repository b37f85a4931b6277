// The public functions as the headers declare them: what the table of ops is compared with.
#pragma once

#include <string>
#include <vector>

namespace isonorm::test {

struct Declaration {
  std::string name;       // "sum"; "reference::add_norm" for a composition
  std::string signature;  // "sum(x, std::vector<int> dims = {}, bool keepdim = false)": tensors by their names only
  std::string header;
};

// Functions in namespace isonorm of the headers of autograd/ops and autograd/fused that the umbrella header shows,
// operators left out. Reads the sources, so it wants the project's root as the working directory.
std::vector<Declaration> public_functions();

// The declarations of one header's text.
std::vector<Declaration> declarations_in(const std::string& source, const std::string& header);

std::string read_text(const std::string& path);

}  // namespace isonorm::test
