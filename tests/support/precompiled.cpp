// The one source of this library that is compiled with the precompiled header: without any, CMake would not build the
// header that the test programs reuse.
#include "tests/support/catch.h"
