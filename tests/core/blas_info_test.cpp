// The BLAS at hand, the warning about a slow one, and memory for its calls.
#include "tests/support/catch.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <vector>

#include "core/error.h"
#include "core/system/blas_calls.h"
#include "core/system/blas_info.h"

using namespace isonorm;
using Catch::Matchers::Contains;

TEST_CASE("the BLAS library says what it is") {
  const BlasInfo info = blas_info();
  CHECK_THAT(info.version, Catch::Matchers::StartsWith("OpenBLAS 0."));
  CHECK_FALSE(info.core.empty());
}

TEST_CASE("only a flavour other than OpenMP is warned about") {
  CHECK(blas_warning({.version = "OpenBLAS 1", .core = "Zen", .flavour = "openmp"}).empty());
  const std::string w = blas_warning({.version = "OpenBLAS 1", .core = "Zen", .flavour = "pthread"});
  CHECK_THAT(w, Contains("OpenBLAS 1 is of the pthread flavour") && Contains("libopenblas0-openmp"));
  CHECK(w.find('\n') == std::string::npos);
}

TEST_CASE("where OpenBLAS would wait for memory without end, its call is an error") {
  const pid_t child = fork();
  if (child == 0) {
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
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}
