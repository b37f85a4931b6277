// The public functions that the headers declare, for comparison with the table of ops.
#pragma once

#include <string>
#include <vector>

namespace isonorm::test {

struct Declaration {
  std::string name;       // "sum"; "reference::add_norm" for a composition
  std::string signature;  // "sum(x, std::vector<int> dims = {}, bool keepdim = false)": tensors appear by name only
  std::string header;
};

// Functions in namespace isonorm in the headers of autograd/ops and autograd/fused, without operators. Reads the
// sources, so the working directory must be the project's root.
std::vector<Declaration> public_functions();

// The declarations of one header's text.
std::vector<Declaration> declarations_in(const std::string& source, const std::string& header);

}  // namespace isonorm::test
