// Closed pipes, stopped terminals, signals, and outputs that are standard output.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "nn/gpt.h"
#include "tests/support/full_output.h"
#include "tests/tools/small_run.h"

namespace fs = std::filesystem;

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

namespace {

bool writes_one(const Folder& f) {
  for (const auto& entry : fs::directory_iterator(f.path))
    if (contains(entry.path().filename().string(), ".tmp.")) return true;
  return false;
}

}  // namespace

TEST_CASE("a signal while a verb writes ends it and leaves no temporary file or folder") {
  const Folder f;
  // The file has 80 MB, so that writing it takes longer than seeing that it has begun.
  nn::Gpt model({.vocab = 40'000,
                 .context = 8,
                 .head_bias = false,
                 .transformer = {.width = 256, .depth = 1, .heads = 2, .affine = true}});
  training::save_model(f / "in", model);
  const int64_t files = f.files();
  for (const auto& [line, signal] : {std::pair{"perturb @in @out", SIGINT},
                                     {"perturb @in @out", SIGTERM},
                                     {"export @in @out", SIGINT},
                                     {"export @in @out.onnx", SIGHUP},
                                     {"export @in @out.gguf", SIGXCPU}}) {
    INFO(line);
    const ChildResult r = f.run(line, {.interrupt_when = [&] { return writes_one(f); }, .signal = signal});
    CHECK(r.code == 128 + signal);
    CHECK(f.files() == files);
    CHECK_FALSE(writes_one(f));
  }
}

TEST_CASE("an output that is standard output is alone there: everything else that is printed goes to standard error") {
  const Folder f;
  write_text(
      f / "tok.json",
      R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}, "pre_tokenizer": {"type": "ByteLevel",)"
      R"( "add_prefix_space": false, "use_regex": true}, "decoder": {"type": "ByteLevel"}})");
  write_text(f / "ab", "abba");
  f.succeeds("train +small -q --steps 2 --checkpoint @c --log @l");
  f.succeeds("convert @c @rms --to rms_norm -q");
  // With bytes: those that a file gets. Without: JSON, whose times differ.
  const std::pair<const char*, bool> commands[] = {{"perturb @c OUT", true},
                                                   {"convert @c OUT --to rms_norm", true},
                                                   {"rotate @rms OUT --basis haar:1", true},
                                                   {"import tests/fixtures/families/olmo OUT", true},
                                                   {"tokenize @tok.json @ab OUT", true},
                                                   {"evaluate @c --data @text.txt --json OUT", false},
                                                   {"compare @c @c2 --json OUT", false},
                                                   {"plot @l --json OUT", false},
                                                   {"audit --checkpoint @c --json OUT", false},
                                                   {"train +small --steps 2 --json OUT", false},
                                                   {"lr-find +small --json OUT", false},
                                                   {"prove +small --steps 2 --json OUT", false}};
  fs::copy_file(f / "c", f / "c2");
  for (const auto& [line, bytes] : commands) {
    const auto with = [&, line = std::string(line)](const std::string& out) {
      return f.succeeds(std::string(line).replace(line.find("OUT"), 3, out));
    };
    INFO(line);
    const std::string status = with("@out").out;
    CHECK_FALSE(status.empty());
    for (const char* name : {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}) {
      const ChildResult r = with(name);
      if (bytes)
        CHECK(r.out == read(f / "out"));
      else
        CHECK(nlohmann::json::accept(r.out));
      CHECK_FALSE(r.err.empty());
    }
    fs::remove(f / "out");
  }
}

TEST_CASE("standard output that cannot be written ends the work when it happens, with 4") {
  const Folder f;
  f.succeeds("train +small -q --steps 2 --checkpoint @c");
  // More tokens than there is time for.
  for (const char* line : {"sample @c a --length 2000000000", "info @c", "man train", "completion bash"}) {
    const ChildResult r = f.gives(4, line, {.close_stdout = true});
    CHECK(contains(r.err, "standard output cannot be written: No space left on device\n"));
  }
}

namespace {
const std::string kTrain = "train +small --steps 50 --evaluate-every 10 --checkpoint @c";
}

TEST_CASE("a training on a terminal that Ctrl-S stops runs to its end; permanent lines and its result wait") {
  const Folder f;
  bool saved = false;
  const auto wait_for_checkpoint = [&] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(4);
    while (!(saved = std::filesystem::exists(f / "c")) && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  };
  const ChildResult r = f.run(
      kTrain, {.environment = {"TERM=xterm"}, .terminal = true, .meanwhile = wait_for_checkpoint, .stopped = true});
  CHECK(saved);
  CHECK(r.code == 0);
  CHECK(integer_at(load_checkpoint(f / "c").values, "step") == 50);
  size_t at = 0;  // lines that stay come in their order, and then the result
  for (const char* words : {"step 10/50  held-out", "step 20/50  held-out", "step 30/50  held-out",
                            "step 40/50  held-out", ", 50 steps: held-out loss "}) {
    CAPTURE(words, r.out);
    at = r.out.find(words, std::min(at, r.out.size()));
    CHECK(at != std::string::npos);
  }
}

TEST_CASE("a training whose stderr is full runs to its end and prints its result") {
  const Folder f;
  const std::string result = f.succeeds(kTrain + " -q").out;
  for (const bool terminal : {true, false}) {
    const Folder other;
    const test::FullOutput full(terminal);
    const ChildResult r = other.run(kTrain, {.environment = {"TERM=xterm"}, .stderr_to = full.writer});
    CHECK(r.code == 0);
    CHECK(contains(r.out, result));
    CHECK(integer_at(load_checkpoint(other / "c").values, "step") == 50);
  }
}
