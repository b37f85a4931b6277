// The program in a process whose C and C++ locale write 1234.5 as "1.234,5": files and lines are the same.
#include <cstdlib>

#include "tests/tools/small_run.h"

namespace {

// The columns of a CSV log but for the seconds.
std::string without_seconds(const std::string& log) {
  std::istringstream lines(log);
  std::string rest;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream cells(line);
    std::string cell;
    for (int column = 0; std::getline(cells, cell, ','); ++column)
      if (column != 4) rest += cell + ',';
    rest += '\n';
  }
  return rest;
}

// Trains, resumes, and passes all files to the verbs that read them. Returns all output and all files, without times.
std::map<std::string, std::string> everything(const ChildOptions& locale) {
  const Folder f;
  std::map<std::string, std::string> found;
  const auto run = [&](const std::string& line) { found[line] = f.succeeds(line, locale).out; };
  const std::string train =
      "train +small -q --lr 0.125 --positions rotary --rotary-share 0.5 --ema 0.5 --evaluate-every 2 ";
  run(train + "--steps 1100 --log @log.csv --checkpoint @c --ema-file @ema --best @best --save-every 600");
  run(train + "--steps 1102 --log @log.csv --checkpoint @c --extend --ema-file @ema --best @best");
  run(train +
      "--steps 4 --log @log.jsonl --json @result.json --report @page.html --tensorboard @events --checkpoint @d");
  run(train + "--steps 6 --log @log.jsonl --checkpoint @d --extend");
  run("evaluate @c --data @text.txt");
  run("sample @c abc --temperature 0.5 --seed 7 -q");
  f.succeeds("plot @log.jsonl --json @plot.json --svg @pictures", locale);
  run("info @c");
  run("verify @c @c");
  run("convert @c @converted --to rms_norm");
  run("rotate @converted @rotated --basis haar:1234567");
  run("perturb @c @moved --ulp 2");
  run("explain layer_norm 1.5,2.25,-3e-1 --eps 1e-3");
  for (const char* name : {"c", "ema", "best", "d", "converted", "rotated", "moved", "pictures/loss.svg"})
    found[name] = read(f / name);
  found["log.csv"] = without_seconds(read(f / "log.csv"));
  std::istringstream options(read(f / "d.toml"));
  for (std::string line; std::getline(options, line);)
    if (!line.starts_with("data =")) found["d.toml"] += line + '\n';
  for (auto& [what, written] : found)
    for (size_t at; (at = written.find(f.path.string())) != written.npos;) written.erase(at, f.path.string().size());
  for (const char* name : {"result.json", "plot.json"}) CHECK(f.json(name).is_object());
  CHECK(f.lines("log.jsonl").size() > 6);
  return found;
}

}  // namespace

TEST_CASE("locale: no file and no line of output depends on it") {
  const Folder locales;
  REQUIRE(std::system(("tests/support/locales.sh " + locales.path.string()).c_str()) == 0);
  const auto plain = everything({});
  for (const char* name : {"de_DE.UTF-8", "ps_AF.UTF-8"}) {
    INFO(name);
    const auto here =
        everything({.environment = {"LOCPATH=" + locales.path.string(), text("ISONORM_TEST_LOCALE=", name),
                                    std::string("LD_PRELOAD=") + ISONORM_TEST_COMMA_LOCALE}});
    REQUIRE(here.size() == plain.size());
    for (const auto& [what, text] : plain) {
      INFO(what << "\n" << text.substr(0, 1000) << "\n" << here.at(what).substr(0, 1000));
      CHECK((here.at(what) == text));
    }
  }
}
