// How runs end where the system refuses memory or threads, where a file is unwritable, where settings are wrong.
#include <sys/resource.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/tensor_map.h"
#include "io/safetensors.h"
#include "tests/support/catch.h"
#include "tests/tools/child.h"
#include "tests/tools/small_run.h"

using namespace isonorm;

namespace {

const std::string kPreload = std::string("LD_PRELOAD=") + ISONORM_TEST_REFUSE;

void check_one_line(const ChildResult& r, int code, const std::string& part) {
  INFO(r.err);
  CHECK(r.code == code);
  CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
  CHECK(contains(r.err, part));
}

}  // namespace

TEST_CASE("memory: every allocation that fails ends with one line and 70") {
  const Folder folder;
  const std::string checkpoint = folder.file("c");
  const std::vector<std::string> train = small(
      folder, "train", {"--steps", "2", "--save-every", "1", "--checkpoint", checkpoint, "--log", folder.file("l")});
  const auto refuse = [&](const std::vector<std::string>& arguments) {
    return run_child(arguments, {.environment = {kPreload, "ISONORM_REFUSE=memory", "OMP_NUM_THREADS=1",
                                                 "ISONORM_REFUSE_REPORT=" + folder.file("report")}});
  };
  for (const auto& arguments : {train, {"verify", checkpoint, checkpoint}}) {
    const ChildResult r = refuse(arguments);
    INFO(r.err);
    CHECK(r.code == 0);
    const std::string report = read(folder.file("report"));
    CHECK(std::count(report.begin(), report.end(), '\n') == 1);
    INFO(report.substr(0, 4000));
    CHECK(std::atoi(report.c_str()) > 300);
  }
}

TEST_CASE("threads: where none can be made there is one, or the exit code is 70") {
  const Folder folder;
  const ChildOptions none = {.environment = {kPreload, "ISONORM_REFUSE=threads"}};
  const std::vector<std::string> train = {"train",   "--model",   "gpt",       "--data",  folder.file("text.txt"),
                                          "--width", "64",        "--depth",   "1",       "--heads",
                                          "2",       "--context", "32",        "--batch", "64",
                                          "--steps", "2",         "--threads", "4"};
  const ChildResult alone = run_child(train, none), together = run_child(train);
  INFO(alone.err);
  CHECK(alone.code == 0);
  const auto loss = [](const std::string& out) { return out.substr(out.find("held-out"), 30); };
  CHECK(loss(alone.out) == loss(together.out));
  check_one_line(run_child({"prove", "--certificate", "--architectures", "gpt1", "--threads", "2", "-q"}, none), 70,
                 "isonorm prove: the system refuses: ");
}

TEST_CASE("threads: more than there can be are a usage error, or are bounded") {
  const Folder folder;
  for (const char* verb : {"prove", "train", "table", "audit"})
    check_one_line(run_child({verb, "--threads", "40000"}), 2, "--threads: 40000 is not a whole number from 1 to 1024");
  check_one_line(run_child({"prove", "--certificate", "--threads", "40000"}), 2, "--threads: 40000");
  std::vector<std::string> all = small(folder, "train", {"--steps", "1", "-q"});
  all.erase(std::find(all.begin(), all.end(), "--threads"), std::find(all.begin(), all.end(), "--threads") + 2);
  CHECK(run_child(all, {.environment = {"OMP_NUM_THREADS=99999"}}).code == 0);
}

TEST_CASE("limits: a stack or an address space too small to begin with ends with one line and 70") {
  const Folder folder;
  const auto limited = [&](int resource, rlim_t bytes) {
    return run_child(small(folder, "train", {"--steps", "1", "-q", "--threads", "2"}),
                     {.environment = {"OMP_NUM_THREADS=2"}, .limits = {{resource, bytes}}});
  };
  for (const rlim_t bytes : {16 << 10, 64 << 10})
    check_one_line(limited(RLIMIT_STACK, bytes), 70, "isonorm: the stack is too small: 256 KB are needed");
#ifndef __SANITIZE_ADDRESS__  // it takes more stack, and terabytes of addresses
  CHECK(limited(RLIMIT_STACK, 256 << 10).code == 0);
  // The libraries themselves take 60 MB of addresses, OpenBLAS 128 MB for each of two threads.
  check_one_line(limited(RLIMIT_AS, 250 << 20), 70, "isonorm: no memory for the libraries");
#endif
}

TEST_CASE("settings: an instruction set that there is not, a profile that cannot be written") {
  const Folder folder;
  const std::vector<std::string> train = small(folder, "train", {"--steps", "1", "-q"});
  check_one_line(run_child(train, {.environment = {"ISONORM_ISA=bad"}}), 3,
                 "isonorm train: ISONORM_ISA: \"bad\" is not base, avx2 or avx512");
  CHECK(run_child(train, {.environment = {"ISONORM_ISA=base"}}).code == 0);
  for (const char* file : {"/no/such/folder/trace", "/dev/full"}) {
    const ChildResult r = run_child(train, {.environment = {std::string("ISONORM_PROFILE=") + file}});
    CHECK(r.code == 4);
    CHECK(contains(r.err, file));
  }
}

TEST_CASE("SIGTERM is Ctrl-C; experiment says that it was interrupted") {
  const Folder folder;
  const ChildResult train = run_child(small(folder, "train", {"--steps", "1000000", "--checkpoint", folder.file("c")}),
                                      {.interrupt_after = "step 1/", .signal = SIGTERM});
  CHECK(train.code == 130);
  CHECK(contains(train.err, "isonorm train: interrupted after step "));
  CHECK(std::filesystem::exists(folder.file("c")));
  const ChildResult experiment = run_child(
      {"experiment", "controls"}, {.environment = {"TERM=xterm"}, .terminal = true, .interrupt_after = "trained 1/"});
  CHECK(experiment.code == 130);
  CHECK(contains(experiment.out, "isonorm experiment: interrupted\r\n"));
  CHECK_FALSE(contains(experiment.out, "refuted"));
}

TEST_CASE("what files say of themselves does not speak to the terminal") {
  const Folder folder;
  const std::string evil =
      "w\x1b[31m\x07\xc2\x9b"
      "2J\n";
  TensorMap a, b;
  a.add(evil, from_vector<float>({1}, {1}));
  b.add(evil, from_vector<float>({2}, {1}));
  save_safetensors(folder.file("a"), a, {{"isonorm.model", evil}});
  save_safetensors(folder.file("b"), b, {{"isonorm.model", evil}});
  const std::vector<std::string> files = {folder.file("a"), folder.file("b")};
  for (const char* verb : {"compare", "verify"}) {
    const ChildResult r = run_child({verb, files[0], files[1]});
    const std::string said = r.out + r.err;
    INFO(said);
    CHECK(r.code > 0);
    CHECK_FALSE(said.empty());
    for (const char control : {'\x1b', '\x07', '\x9b'}) CHECK(said.find(control) == said.npos);
  }
  CHECK(contains(run_child({"compare", files[0], files[1]}).out, "w\\x1b[31m\\x07\\x9b2J "));
}
