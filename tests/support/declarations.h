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

// Functions in namespace isonorm of the headers in autograd/ops and autograd/fused, operators left out. Reads the
// sources, so it wants the project's root as the working directory.
std::vector<Declaration> public_functions();

// The declarations of one header's text.
std::vector<Declaration> declarations_in(const std::string& source, const std::string& header);

}  // namespace isonorm::test
