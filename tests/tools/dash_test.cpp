// "-" in the place of a file name is standard input or standard output, in every verb.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <set>

#include "tests/tools/small_run.h"

namespace fs = std::filesystem;

namespace {

const std::string kTokenizer = "tests/fixtures/tokenizers/gpt2";

// The program with a pipe as standard input, through which these bytes come.
ChildResult piped(const Folder& f, const std::string& line, const std::string& bytes) {
  const std::string pipe = f / "pipe";
  fs::remove(pipe);
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  // The child's open waits for this one. If the program ends early, nobody reads the pipe.
  const auto write = [&] {
    const int to = open(pipe.c_str(), O_WRONLY | O_CLOEXEC);
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t n = ::write(to, bytes.data() + at, bytes.size() - at);
      if (n <= 0) break;
      at += static_cast<size_t>(n);
    }
    close(to);
  };
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  const ChildResult r = f.run(line, {.input = pipe, .meanwhile = write});
  std::signal(SIGPIPE, before);
  return r;
}

std::string with(std::string line, const std::string& word, const std::string& by) {
  return line.replace(line.find(word), word.size(), by);
}

struct Models : Folder {
  Models() {
    succeeds("train +small -q --steps 2 --checkpoint @c --log @l");
    succeeds("train +small -q --steps 3 --checkpoint @d");
    succeeds("tokenize " + kTokenizer + " @text.txt @ids");
    write_text(*this / "spec", succeeds("spec tests/fixtures/families/gpt2").out);
  }
};

// JSON without the time that it took.
std::string untimed(const std::string& s) { return std::regex_replace(s, std::regex("\"seconds\": [^,]*"), ""); }

}  // namespace

TEST_CASE("a dash instead of an input file: a pipe is as good as the file") {
  const Models f;
  const std::pair<const char*, const char*> lines[] = {
      {"tokenize tests/fixtures/tokenizers/gpt2 IN @out", "text.txt"},
      {"tokenize --decode tests/fixtures/tokenizers/gpt2 IN @out", "ids"},
      {"evaluate @c --data IN --json @out", "text.txt"},
      {"evaluate IN --data @text.txt --json @out", "c"},
      {"sample IN abc --length 5 -q", "c"},
      {"perturb IN @out", "c"},
      {"convert IN @out --to crms_norm", "c"},
      {"compare IN @d --json @out", "c"},
      {"compare @d IN", "c"},
      {"compare @c @d --order IN", "l"},
      {"verify IN @d", "c"},
      {"hooks IN", "spec"},
      {"plot IN --report @out", "l"},
      {"info IN", "c"},
      {"train +small --steps 2 -q --data IN --checkpoint @out", "text.txt"},
      {"train +small --steps 2 -q --init IN --checkpoint @out", "c"},
      {"train --config IN --checkpoint @out -q", "c.toml"}};
  for (const auto& [line, file] : lines) {
    INFO(line);
    const std::string name = f / file, bytes = read(name);
    fs::remove(f / "out"), fs::remove(f / "out.previous");
    const ChildResult of_file = f.run(with(line, "IN", name));
    const std::string written = fs::exists(f / "out") ? read(f / "out") : "";
    fs::remove(f / "out"), fs::remove(f / "out.previous");
    const ChildResult of_pipe = piped(f, with(line, "IN", "-"), bytes);
    INFO(of_pipe.err);
    CHECK(of_pipe.code == of_file.code);
    const auto plain = [&](const std::string& s) {  // without the name, which decides how wide a column is
      return std::regex_replace(s, std::regex("/dev/stdin|" + name + "|[ -]+"), " ");
    };
    CHECK(plain(of_pipe.out) == plain(of_file.out));
    CHECK(plain(untimed(fs::exists(f / "out") ? read(f / "out") : "")) == plain(untimed(written)));
  }
  CHECK_FALSE(fs::exists("-"));
}

TEST_CASE("a dash as an output file: standard output gets the bytes of the file and nothing else") {
  const Models f;
  const char* lines[] = {"perturb @c OUT",
                         "convert @c OUT --to crms_norm -q",
                         "import tests/fixtures/families/gpt2 OUT",
                         "tokenize tests/fixtures/tokenizers/gpt2 @text.txt OUT",
                         "tokenize --decode tests/fixtures/tokenizers/gpt2 @ids OUT",
                         "evaluate @c --data @text.txt --json OUT",
                         "compare @c @d --json OUT",
                         "plot @l --json OUT",
                         "plot @l --report OUT",
                         "train +small --steps 2 --ema 0.5 --ema-file OUT"};
  for (const std::string line : lines) {
    INFO(line);
    const ChildResult to_file = f.run(with(line, "OUT", "@out")), to_dash = f.run(with(line, "OUT", "-"));
    CHECK(to_dash.code == to_file.code);
    CHECK(untimed(to_dash.out) == untimed(read(f / "out")));
    CHECK_FALSE(to_dash.err.empty());
  }
  std::istringstream log(f.succeeds("train +small --steps 3 --log -").out);
  int steps = 0;
  for (std::string line; std::getline(log, line);) steps += nlohmann::json::parse(line).contains("step");
  CHECK(steps == 3);
  CHECK_FALSE(fs::exists("-"));
}

TEST_CASE("a dash means the open file: earlier and later output stays in it") {
  const Models f;
  const std::string both = f / "both";
  const std::string run = " evaluate " + f / "c" + " --data " + f / "text.txt" + " --json - 2> " + f / "err";
  REQUIRE(std::system(("{ echo before; " ISONORM_PROGRAM + run + "; echo after; } > " + both).c_str()) == 0);
  f.succeeds("evaluate @c --data @text.txt --json @json");
  CHECK(untimed(read(both)) == "before\n" + untimed(read(f / "json")) + "after\n");
  // A log, too, which is of another training when it is continued elsewhere.
  std::string train = "{ echo before; " ISONORM_PROGRAM;
  for (const std::string& word : f.words("train +small --steps 1 -q --log -")) train += " " + word;
  REQUIRE(std::system((train + "; echo after; } > " + both + " 2> " + f / "err").c_str()) == 0);
  CHECK(read(both).starts_with("before\n{\"manifest\""));
  CHECK(read(both).ends_with("}\nafter\n"));
  // And of standard input, what is left in it.
  write_text(f / "lines", "first\n" + read(f / "text.txt"));
  const std::string rest = "{ read line; " ISONORM_PROGRAM " tokenize " + kTokenizer + " - " + f / "rest";
  REQUIRE(std::system((rest + "; } < " + f / "lines > " + f / "err").c_str()) == 0);
  CHECK(read(f / "rest") == read(f / "ids"));
}

TEST_CASE("a dash that cannot be this kind of file is refused in a line") {
  const Models f;
  f.refuses("train +small --json - --report -", 2, "--report and --json name the same file /dev/stdout");
  f.refuses("train +small --init - --data -", 2, "both name /dev/stdin");
  f.refuses("sample -", 2, "MODEL and PROMPT both name /dev/stdin", {.input = f / "c"});
  for (const char* option : {"--checkpoint", "--best"})
    f.refuses(text("train +small --evaluate-every 1 ", option, " -"), 2,
              text(option, ": is not a file that can be standard input or output; ./- is a file named -"));
  for (const char* line : {"train +small --tensorboard -", "plot @l --svg -"})
    f.refuses(line, 2, "- is standard output, not a folder; ./- is a folder named -");
  f.refuses("export @c -", 3, "expected the name of a new folder");
  f.refuses("tokenize " + kTokenizer + " - @out", 4, "standard input cannot be read: Is a directory",
            {.input = f / "."});
  write_text(f / "out", "kept");
  f.refuses("tokenize " + kTokenizer + " - @out", 2, "is the file of IN, which would be lost", {.input = f / "out"});
  f.refuses("compare @c @d --json /dev/stdin -q", 4, "/dev/stdin: cannot be written: it is open for reading",
            {.input = f / "l"});
  for (const char* line : {"perturb @c -", "convert @c - --to crms_norm", "import tests/fixtures/families/gpt2 -",
                           "tokenize tests/fixtures/tokenizers/gpt2 @text.txt -"}) {
    const ChildResult r = f.gives(2, line, {.terminal = true});
    CHECK_THAT(r.out, Contains("OUT: a terminal shows no binary file: name a file, or send it to a pipe"));
  }
  const ChildResult decoded = f.succeeds("tokenize --decode " + kTokenizer + " @ids -", {.terminal = true});
  CHECK_THAT(decoded.out, Contains("axby zc"));
  CHECK_FALSE(fs::exists("-"));
}
