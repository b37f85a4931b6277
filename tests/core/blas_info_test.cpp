// The BLAS library of this process, and memory for its calls.
#include "tests/support/catch.h"

#include <sys/resource.h>

#include <fstream>
#include <memory>
#include <vector>

#include "core/error.h"
#include "core/system/blas.h"
#include "tests/support/child.h"

using namespace isonorm;

TEST_CASE("the BLAS library names itself") {
  const BlasInfo info = blas_info();
  CHECK_THAT(info.version, Catch::Matchers::StartsWith("OpenBLAS 0."));
  CHECK_FALSE(info.core.empty());
#ifdef __x86_64__
  CHECK(info.vector_bits >= 128);  // every core of a build for all x86-64 machines is in the table
#endif
}

TEST_CASE("where OpenBLAS would wait for memory without end, its call is an error") {
  const auto out_of_memory = [] {
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t room = pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + (100 << 20);
    const rlimit limit = {room, room};
    setrlimit(RLIMIT_AS, &limit);
    std::vector<std::unique_ptr<BlasCall>> at_once;
    int code = 1;
    try {
      while (at_once.size() < 100) at_once.push_back(std::make_unique<BlasCall>());
    } catch (const Error& e) {
      code = e.kind() == ErrorKind::memory ? 0 : 2;
    }
    _exit(code);
  };
  CHECK(test::status_of_child(out_of_memory) == 0);
}
