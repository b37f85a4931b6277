// Prints docs/ops.md:  ops_docs > docs/ops.md
#include <cstdio>

#include "tests/support/ops_docs.h"

int main() { std::fputs(isonorm::test::ops_docs().c_str(), stdout); }
