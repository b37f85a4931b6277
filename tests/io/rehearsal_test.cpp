// A path that cannot be written is reported before there is anything to write. A file that may not be replaced stays.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "core/error.h"
#include "io/replacement.h"
#include "tests/support/catch.h"
#include "tests/support/read_text.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
using Catch::Matchers::Contains;

namespace {

constexpr uid_t kOther = 65534;  // nobody

// The error that `body` throws in a child process; "" if none.
std::string said_in_child(const std::function<void()>& body) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    std::string said;
    try {
      body();
    } catch (const std::exception& e) {
      said = e.what();
    }
    (void)!write(ends[1], said.data(), said.size());
    _exit(0);
  }
  close(ends[1]);
  std::string said(4096, ' ');
  said.resize(static_cast<size_t>(std::max<ssize_t>(0, read(ends[0], said.data(), said.size()))));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  return said;
}

std::string said_by_another(const std::function<void()>& body) {
  return said_in_child([&] {
    if (setgid(kOther) != 0 || setuid(kOther) != 0) return;
    body();
  });
}

void replace(const std::string& path) {
  io::Replacement r(path);
  r.write("new");
  r.commit();
}

}  // namespace

TEST_CASE("rehearsal: long names and paths, missing folders, too little room; nothing is left") {
  const TempFolder f;
  const std::string longest(234, 'a'), longer(235, 'a');  // with ".tmp." and 16 digits: 255 and 256 bytes
  io::Replacement::rehearse(f / longest, 1);
  CHECK_THROWS_WITH(io::Replacement::rehearse(f / longer, 1), Contains("File name too long"));
  std::string deep = f.path.string();
  while (deep.size() < 4080) deep += "/" + std::string(std::min<size_t>(200, 4080 - deep.size()), 'd');
  CHECK_THROWS_AS(io::Replacement::rehearse(deep, 1), Error);
  CHECK_THROWS_WITH(io::Replacement::rehearse(f / "none/a", 1),
                    Contains("none/a: cannot create a file beside it: No such"));
  CHECK_THROWS_WITH(io::Replacement::rehearse(f.path.string(), 1), Contains("is a folder"));
  CHECK_THAT(said_in_child([&] {
               std::signal(SIGXFSZ, SIG_IGN);
               const rlimit limit{1000, 1000};
               setrlimit(RLIMIT_FSIZE, &limit);
               io::Replacement::rehearse(f / "a", 1000);
               io::Replacement::rehearse(f / "a", 1001);
             }),
             Contains("/a: there is no room for 1001 bytes: File too large"));
  CHECK(f.files() == 0);
}

TEST_CASE("rehearsal: an old file stays, a pipe's reader sees no end") {
  const TempFolder f;
  write_text(f / "a", "old");
  io::Replacement::rehearse(f / "a", 100);
  CHECK(test::read_text(f / "a") == "old");
  REQUIRE(mkfifo((f / "pipe").c_str(), 0600) == 0);
  io::Replacement::rehearse(f / "pipe", 100);  // opening it would wait for a reader
  REQUIRE(mknod((f / "socket").c_str(), S_IFSOCK | 0600, 0) == 0);
  CHECK_THROWS_WITH(io::Replacement::rehearse(f / "socket", 1), Contains("is a socket"));
  CHECK(f.files() == 3);
}

TEST_CASE("replacements: whether a file may be replaced is asked of the file that a link leads to") {
  if (geteuid() != 0) return;  // only root can become another user
  const TempFolder f;
  std::filesystem::permissions(f.path, std::filesystem::perms::all);
  write_text(f / "root's", "old");
  REQUIRE(chmod((f / "root's").c_str(), 0644) == 0);
  std::filesystem::create_symlink("root's", f / "link");
  for (const char* name : {"root's", "link"}) {
    CHECK_THAT(said_by_another([&] { replace(f / name); }), Contains("cannot be written: Permission denied"));
    CHECK_THAT(said_by_another([&] { io::Replacement::rehearse(f / name, 1); }), Contains("Permission denied"));
  }
  // A file that all may write but not replace: its folder is sticky.
  REQUIRE(chmod((f / "root's").c_str(), 0666) == 0);
  CHECK(said_by_another([&] { io::Replacement::rehearse(f / "link", 1); }) == "");
  REQUIRE(chmod(f.path.c_str(), 01777) == 0);
  CHECK_THAT(said_by_another([&] { replace(f / "root's"); }),
             Contains("it is another user's, in a folder where only owners"));
  CHECK(test::read_text(f / "root's") == "old");
  CHECK(f.files() == 2);
  CHECK(said_by_another([&] { replace(f / "own"), replace(f / "own"); }) == "");
}
