// The only source of this library that uses the precompiled header. Without one, CMake would not build the header that
// the test programs reuse.
#include "tests/support/catch.h"
