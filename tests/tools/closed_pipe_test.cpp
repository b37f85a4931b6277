// Every verb ends with 130 and without a message when the reader of standard output closes the pipe, as README says.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/tools/small_run.h"

using namespace isonorm;

namespace {

// Runs the program with a pipe as standard output, whose reader takes `bytes` and closes it; 0: before the program
// starts. Returns the exit code, or 128 + the signal. stderr goes to @err. ignored: as under nohup(1), SIGPIPE is
// ignored.
int code_of(const Folder& f, const std::string& line, size_t bytes, bool ignored = false) {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const char* other = std::getenv("ISONORM_PROGRAM");
  Words words = Words{other ? other : ISONORM_PROGRAM} + f.words(line);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::string err = f / "err";
  if (bytes == 0) close(ends[0]);
  const pid_t pid = fork();
  if (pid == 0) {
    std::signal(SIGPIPE, ignored ? SIG_IGN : SIG_DFL);
    dup2(ends[1], 1), dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
    execv(argv[0], argv.data());
    _exit(126);
  }
  close(ends[1]);
  char byte;
  for (size_t n = 0; n < bytes && ::read(ends[0], &byte, 1) == 1;) ++n;
  if (bytes > 0) close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TEST_CASE("a reader that closes the pipe ends every verb with 130 and without a message") {
  const Folder f;
  f.succeeds("train +small --steps 2 -q --checkpoint @model --log @log");
  for (const char* line :
       {"sample @model abc --length 1000000000 -q", "train +small --steps 2 -q", "info @model", "info",
        "evaluate @model --data @text.txt", "plot @log", "verify @model @model", "convert @model @out --to crms_norm",
        "export @model @out.onnx", "completion bash", "man train", "--help", "sample --help", "--version",
        "experiment --list", "table --predicates"})
    for (const bool ignored : {false, true}) {
      INFO(line << ", SIGPIPE " << (ignored ? "ignored" : "as usual"));
      std::filesystem::remove(f / "out"), std::filesystem::remove(f / "out.onnx");
      CHECK(code_of(f, line, 0, ignored) == 130);
      CHECK(read(f / "err") == "");
    }
  for (const char* line :
       {"train +small --steps 3 --log -", "train +small --steps 3 -q --json -",
        "tokenize tests/fixtures/tokenizers/gpt2 @text.txt -", "evaluate @model --data @text.txt --json -"}) {
    INFO(line);
    CHECK(code_of(f, line, 0) == 130);
    CHECK_FALSE(contains(read(f / "err"), "pipe"));
  }
  CHECK(code_of(f, "sample @model abc --length 1000000000 -q", 10) == 130);
  CHECK(read(f / "err") == "");
  CHECK(code_of(f, "sample @model abc --length 3 -q", 1000) == 0);
}

TEST_CASE("a pipe named on the command line whose reader has gone is an error of that file") {
  const Folder f;
  std::string words;
  for (int i = 0; i < 100'000; ++i) words += "word ";
  write_text(f / "words", words);
  REQUIRE(mkfifo((f / "pipe").c_str(), 0600) == 0);
  const ChildResult r = f.run("tokenize tests/fixtures/tokenizers/gpt2 @words @pipe", {.meanwhile = [&] {
                                const int pipe = open((f / "pipe").c_str(), O_RDONLY | O_CLOEXEC);
                                char byte;
                                CHECK(::read(pipe, &byte, 1) == 1);
                                close(pipe);
                              }});
  check_refusal(r, 4, "tokenize", f / "pipe");
}
