// A lock on a file name: the second process learns who holds it.
#include "io/unfinished.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "core/error.h"
#include "tests/support/catch.h"
#include "tests/support/read_text.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
using Catch::Matchers::Contains;

TEST_CASE("name lock: the second is told the first's process and host; the end leaves no file") {
  const TempFolder f;
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  {
    const io::NameLock first(f / "c");
    CHECK_THROWS_WITH(io::NameLock(f / "c"), f / "c" + text(": process ", getpid(), " on ", host, " is writing it"));
    const io::NameLock other(f / "d");
    std::filesystem::create_symlink("c", f / "link");  // another name of the same file
    CHECK_THROWS_WITH(io::NameLock(f / "link"), Contains("is writing it"));
  }
  CHECK(f.files() == 1);  // the link
  const io::NameLock again(f / "c");
  io::Unfinished::remove_all();  // as a signal handler does
  CHECK(f.files() == 1);
}

TEST_CASE("name lock: another process's lock, and a killed process's") {
  const TempFolder f;
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const io::NameLock held(f / "c");
    (void)!write(ready[1], "x", 1);
    pause();
    _exit(0);
  }
  char byte;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  CHECK_THROWS_WITH(io::NameLock(f / "c"), Contains(text("process ", child, " on ")));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(f.files() == 1);
  { const io::NameLock taken(f / "c"); }
  CHECK(f.files() == 0);
  for (int fd : ready) close(fd);
}

TEST_CASE("name lock: a file with the lock's name that is no lock is kept; outputs that are no files have no lock") {
  const TempFolder f;
  write_text(f / "c.lock", "notes of a person");
  CHECK_THROWS_WITH(io::NameLock(f / "c"), Contains("c.lock: is in the way: it is no lock"));
  CHECK(test::read_text(f / "c.lock") == "notes of a person");
  write_text(f / "notes", "notes");
  std::filesystem::create_symlink("notes", f / "d.lock");
  CHECK_THROWS_AS(io::NameLock(f / "d"), Error);
  CHECK(test::read_text(f / "notes") == "notes");
  const io::NameLock none(""), device("/dev/null");
  CHECK_FALSE(std::filesystem::exists("/dev/null.lock"));
  CHECK_THROWS_WITH(io::NameLock(f / "no folder/c"), Contains("c.lock: cannot be written: No such file"));
}
