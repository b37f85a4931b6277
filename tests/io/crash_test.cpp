// Saving when a system call fails or the process dies: afterwards the file is the old checkpoint or the new one, bit by
// bit.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "io/checkpoint.h"
#include "io/replacement.h"
#include "tests/support/catch.h"
#include "tests/support/child.h"
#include "tests/support/read_text.h"
#include "tests/support/same_bytes.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
using Catch::Matchers::Contains;

namespace {

constexpr int kTensors = 40;

// A checkpoint whose contents depend on `step`.
Checkpoint state(int64_t step) {
  Checkpoint c;
  for (int i = 0; i < kTensors; ++i) {
    Tensor t = empty({100 + i}, {DType::i64});
    for (int64_t k = 0; k < t.numel(); ++k) t.mutable_data<int64_t>()[k] = step * 1000 + i;
    (i % 2 ? c.optimizer : c.weights).add(std::to_string(i), t);
  }
  c.values["step"] = std::to_string(step);
  return c;
}

bool same(const Checkpoint& a, const Checkpoint& b) {
  const auto equal = [](const TensorMap& x, const TensorMap& y) {
    return x.size() == y.size() && std::all_of(x.begin(), x.end(), [&](const auto& named) {
             return y.find(named.first) && same_bytes(named.second, y.at(named.first));
           });
  };
  return a.values == b.values && equal(a.weights, b.weights) && equal(a.optimizer, b.optimizer);
}

// The fault at system call number `at` (from 0) of the following saves.
int calls = 0, at = -1;
std::string last_call;  // the kind of that call, if it happened
enum class Then { fail, die, die_half_way } then = Then::fail;
int reason = EIO;

// True if this call is the one that must fail.
bool stopped(const char* kind) {
  if (calls++ != at) return false;
  last_call = kind;
  if (then != Then::fail && std::strcmp(kind, "write") != 0) raise(SIGKILL);
  errno = reason;
  return true;
}

const io::SystemCalls kReal = io::system_calls();

struct Injected {
  explicit Injected(int n) {
    calls = 0;
    at = n;
    last_call.clear();
    io::system_calls() = {
        [](const char* p, int flags, mode_t mode) { return stopped("open") ? -1 : kReal.open(p, flags, mode); },
        [](int fd, const void* p, size_t n) -> ssize_t {
          if (!stopped("write")) return kReal.write(fd, p, n);
          if (then == Then::fail) return -1;
          if (then == Then::die_half_way) (void)!kReal.write(fd, p, n / 2);
          return raise(SIGKILL);
        },
        [](int fd) { return stopped("fsync") ? -1 : kReal.fsync(fd); },
        [](int fd) {
          const bool fails = stopped("close");
          const int status = kReal.close(fd);  // even a close() that fails closes the file
          if (fails) errno = reason;
          return fails ? -1 : status;
        },
        [](const char* from, const char* to) { return stopped("rename") ? -1 : kReal.rename(from, to); },
    };
  }
  ~Injected() { io::system_calls() = kReal; }
};

}  // namespace

TEST_CASE("a save with any failing system call leaves the old state and no other file") {
  const TempFolder f;
  const std::string path = f / "c";
  const Checkpoint a = state(1), b = state(2);
  then = Then::fail;
  std::map<std::string, int> kinds;
  bool done = false;
  for (int n = 0; !done; ++n) {
    REQUIRE(n < 1000);
    reason = n % 2 ? ENOSPC : EIO;
    save_checkpoint(path, a);
    std::string message;
    {
      const Injected injected(n);
      try {
        save_checkpoint(path, b);
        done = calls <= n;  // fewer calls than n: none failed
      } catch (const Error& e) {
        CHECK(e.kind() == ErrorKind::io);
        message = e.what();
      }
    }
    INFO("call " << n << " " << last_call << ": " << message);
    const Checkpoint found = load_checkpoint(path);
    // After the rename, only the folder's fsync and two closes are left; nothing is opened.
    const bool renamed = kinds["rename"] > 0;
    CHECK(!(renamed && last_call == "open"));
    CHECK(same(found, renamed ? b : a));
    CHECK(f.files() == 1);
    if (!done && !(renamed && last_call == "close")) {
      CHECK_THAT(message, Contains(path + ": cannot") && Contains(std::strerror(reason)));
    }
    ++kinds[last_call];
  }
  CHECK(kinds["open"] == 2);
  CHECK(kinds["write"] >= kTensors);
  CHECK(kinds["fsync"] == 2);
  CHECK(kinds["close"] == 2);
  CHECK(kinds["rename"] == 1);
}

TEST_CASE("the first save of a name that fails leaves nothing") {
  const TempFolder f;
  reason = ENOSPC;
  then = Then::fail;
  const Injected injected(3);
  CHECK_THROWS_WITH(save_checkpoint(f / "c", state(1)), Contains("No space left on device"));
  CHECK(f.files() == 0);
}

TEST_CASE("short and interrupted writes are continued") {
  const TempFolder f;
  static int count;
  count = 0;
  io::system_calls().write = [](int fd, const void* p, size_t n) -> ssize_t {
    if (++count % 3 == 0) return errno = EINTR, -1;
    return kReal.write(fd, p, n > 7 ? n / 2 : n);
  };
  save_checkpoint(f / "c", state(5));
  io::system_calls() = kReal;
  CHECK(count > 10 * kTensors);
  CHECK(same(load_checkpoint(f / "c"), state(5)));
}

TEST_CASE("a process killed at any system call of a save leaves the old state or the new") {
  const TempFolder f;
  const std::string path = f / "c";
  const Checkpoint a = state(1), b = state(2);
  int points = 0, old_states = 0;
  for (const Then how : {Then::die, Then::die_half_way}) {
    then = how;
    for (int n = 0;; ++n) {
      save_checkpoint(path, a);  // removes the temporary file of the child before
      REQUIRE(f.files() == 1);
      const int status = test::status_of_child([&] {
        const Injected injected(n);
        save_checkpoint(path, b);
      });
      if (WIFEXITED(status)) break;  // fewer than n calls
      REQUIRE(WIFSIGNALED(status));
      REQUIRE(WTERMSIG(status) == SIGKILL);
      ++points;
      const Checkpoint found = load_checkpoint(path);
      const bool old = same(found, a);
      old_states += old;
      INFO("killed at call " << n);
      CHECK((old || same(found, b)));
    }
    CHECK(same(load_checkpoint(path), b));
  }
  CHECK(points >= 50);
  CHECK(old_states > 0);
  CHECK(old_states < points);
}

TEST_CASE("a process killed at any time while it saves again and again leaves a whole state") {
  const TempFolder f;
  const std::string path = f / "c";
  save_checkpoint(path, state(0));
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      for (int64_t step = 0;; ++step) save_checkpoint(path, state(step));
    }
    usleep(static_cast<useconds_t>(1000 + 531 * i));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const Checkpoint found = load_checkpoint(path);
    INFO("kill " << i);
    CHECK(same(found, state(integer_at(found.values, "step"))));
  }
  save_checkpoint(path, state(1));
  CHECK(f.files() == 1);  // the files of the dead processes are gone
}

namespace {

void replace(const std::string& path, const std::string& content) {
  io::Replacement r(path);
  r.write(content);
  r.commit();
}

}  // namespace

TEST_CASE("replacements: files of dead processes are removed, files of living ones and of others stay") {
  const TempFolder f;
  for (const char* name : {"a.tmp.x", "a.tmp.", "a.tmp.1", "a.tmp.0123456789abcdeg", "a.tmp.0123456789abcdef0",
                           "b.tmp.0123456789abcdef", "ba.tmp.0123456789abcdef"})
    write_text(f / name, "other");
  write_text(f / "a.tmp.0123456789abcdef", "left behind");
  std::optional<io::Replacement> living(f / "a");
  living->write("half");
  CHECK_FALSE(std::filesystem::exists(f / "a.tmp.0123456789abcdef"));
  CHECK(f.files() == 8);
  replace(f / "a", "while another is written");
  CHECK(f.files() == 9);
  CHECK(test::read_text(f / "a") == "while another is written");
  living->write(" and half");
  living->commit();
  CHECK(test::read_text(f / "a") == "half and half");
  living.reset();
  CHECK(f.files() == 8);
}

// The children wait when each has written half. The test does not rely on process ids, because two containers may share
// them.
TEST_CASE("replacements: two processes that write one file do not touch each other's") {
  const TempFolder f;
  int ready[2], go[2];
  REQUIRE((pipe(ready) == 0 && pipe(go) == 0));
  pid_t children[2];
  for (pid_t& child : children) {
    child = fork();
    if (child == 0) {
      const std::string half(1000, &child == children ? 'a' : 'b');
      char byte = 0;
      {
        io::Replacement r(f / "c");
        r.write(half);
        (void)!write(ready[1], &byte, 1);
        (void)!read(go[0], &byte, 1);
        r.write(half);
        r.commit();
      }
      _exit(0);
    }
  }
  char byte = 0;
  for (int i = 0; i < 2; ++i) REQUIRE(read(ready[0], &byte, 1) == 1);
  CHECK(f.files() == 2);
  for (int i = 0; i < 2; ++i) {
    REQUIRE(write(go[1], &byte, 1) == 1);
    int status = 0;
    wait(&status);
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
    const std::string whole = test::read_text(f / "c");
    CHECK((whole == std::string(2000, 'a') || whole == std::string(2000, 'b')));
  }
  CHECK(f.files() == 1);
  for (int fd : {ready[0], ready[1], go[0], go[1]}) close(fd);
}

TEST_CASE("replacements: links are followed, dangling ones too; folders are refused") {
  const TempFolder f;
  std::filesystem::create_directory(f / "folder");
  std::filesystem::create_symlink("folder/a", f / "link");
  std::filesystem::create_symlink("link", f / "link to link");
  replace(f / "link to link", "through the links");
  CHECK(std::filesystem::is_symlink(f / "link"));
  CHECK(std::filesystem::is_symlink(f / "link to link"));
  CHECK(test::read_text(f / "folder/a") == "through the links");
  std::filesystem::create_symlink("circle", f / "circle");
  CHECK_THROWS_WITH(replace(f / "circle", "x"), Contains("lead in a circle"));
  CHECK_THROWS_WITH(replace(f / "folder", "x"), Contains("is a folder"));
  CHECK(f.files() == 4);
}

TEST_CASE("replacements: devices and pipes are written, not replaced") {
  const TempFolder f;
  const std::string pipe = f / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  replace(pipe, "through the pipe");
  char got[64] = {};
  CHECK(read(reader, got, sizeof got) == 16);
  CHECK(std::string(got) == "through the pipe");
  close(reader);
  CHECK(std::filesystem::is_fifo(pipe));
  CHECK(f.files() == 1);
  // A device node of our own, if we may create one: if this failed, the machine's would be gone.
  const std::string full = f / "full";
  if (mknod(full.c_str(), S_IFCHR | 0600, makedev(1, 7)) != 0) return;
  CHECK_THROWS_AS(save_checkpoint(full, state(1)), Error);
  CHECK(std::filesystem::is_character_file(full));
  CHECK(f.files() == 2);
}
