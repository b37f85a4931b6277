// docs/ops.md, printed from the rows of the harness.
#pragma once

#include <string>

namespace isonorm::test {

std::string ops_docs();

}  // namespace isonorm::test
