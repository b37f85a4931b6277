#define CATCH_CONFIG_RUNNER
#include "tests/support/catch.h"

#include "core/system/idle.h"

int main(int argc, char** argv) {
  isonorm::wait_quietly(argv);
  return Catch::Session().run(argc, argv);
}
