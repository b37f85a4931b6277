// How runs end where the system refuses memory or threads, and where settings are wrong.
#include <sys/resource.h>

#include "core/kernels/kernel.h"
#include "tests/tools/small_run.h"

namespace {

const std::string kPreload = std::string("LD_PRELOAD=") + ISONORM_TEST_REFUSE;

// On all threads.
Words one_step(const Folder& f) {
  Words words = f.words("train +small --steps 1 -q");
  words.erase(std::ranges::find(words, "--threads"), words.end());
  return words;
}

}  // namespace

TEST_CASE("memory: every allocation that fails ends with one line and 70") {
  const Folder f;
  for (const char* line : {"train +small --steps 2 --save-every 1 --checkpoint @c --log @l", "verify @c @c"}) {
    f.succeeds(line, {.environment = {kPreload, "ISONORM_REFUSE=memory", "OMP_NUM_THREADS=1",
                                      "ISONORM_REFUSE_REPORT=" + f / "report"}});
    const std::string report = read(f / "report");
    INFO(report.substr(0, 4000));
    CHECK(std::count(report.begin(), report.end(), '\n') == 1);
    CHECK(std::atoi(report.c_str()) > 300);
  }
}

TEST_CASE("threads: if none can be made, one thread does the work") {
  const Folder f;
  const ChildOptions none = {.environment = {kPreload, "ISONORM_REFUSE=threads"}};
  const auto loss = [&](const ChildOptions& options) {
    const std::string line = "train +small --width 64 --context 32 --batch 64 --steps 2 --threads 4";
    const std::string out = f.succeeds(line, options).out;
    return out.substr(out.find("held-out"), 30);
  };
  CHECK(loss(none) == loss({}));
  CHECK(run_child(one_step(f), {.environment = {"OMP_NUM_THREADS=99999"}}).code == 0);
}

TEST_CASE("limits: a stack or an address space too small to begin with ends with one line and 70") {
  const Folder f;
  const auto limited = [&](int resource, rlim_t bytes) {
    return run_child(one_step(f), {.environment = {"OMP_NUM_THREADS=2"}, .limits = {{resource, bytes}}});
  };
  // On 16 KB the loader, above the environment, may end the process before our code begins.
  for (const rlim_t bytes : {64 << 10, 128 << 10})
    check_refusal(limited(RLIMIT_STACK, bytes), 70, "", "isonorm: the stack is too small: 256 KB are needed");
#ifndef __SANITIZE_ADDRESS__  // it takes more stack, and terabytes of addresses
  CHECK(limited(RLIMIT_STACK, 256 << 10).code == 0);
  // The libraries themselves take 60 MB of addresses, OpenBLAS 128 MB for each of two threads.
  check_refusal(limited(RLIMIT_AS, 250 << 20), 70, "", "isonorm: no memory for the libraries");
#endif
}

TEST_CASE("settings: an instruction set that there is not") {
  const Folder f;
  const std::string train = "train +small --steps 1 -q";
  f.refuses(train, 3, "ISONORM_ISA: \"bad\" is not one of base, avx2, avx512, avx512_bf16, amx_bf16",
            {.environment = {"ISONORM_ISA=bad"}});
  if (kCompiled[0] == Isa::base)
    f.succeeds(train, {.environment = {"ISONORM_ISA=base"}});
  else
    f.refuses(train, 3, "ISONORM_ISA: this build has no base", {.environment = {"ISONORM_ISA=base"}});
}
