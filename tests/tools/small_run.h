// The program run in a folder of its own, on a language model so small that it trains within a second.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "core/error.h"
#include "io/checkpoint.h"
#include "io/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/read_text.h"
#include "tests/support/same_bytes.h"
#include "tests/support/temp_folder.h"
#include "tests/tools/child.h"
#include "training/model_file.h"

namespace isonorm {

using Words = std::vector<std::string>;

inline Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline bool contains(const std::string& s, const std::string& part) { return s.find(part) != std::string::npos; }

inline std::string read(const std::string& path) {
  const std::vector<uint8_t> bytes = read_bytes(path);
  return {bytes.begin(), bytes.end()};
}

// The options that a message names, "--width", which `isonorm VERB --help` does not have. Words that repeat the command
// line, and options of another verb that the message names ("isonorm convert --to"), are not among them.
inline std::string foreign_options(const std::string& verb, const std::string& message) {
  static std::map<std::string, std::string> helps;
  if (!helps.contains(verb)) helps[verb] = run_child({verb, "--help"}).out;
  std::string foreign;
  const std::regex option("--[a-z][a-z0-9-]*"), elsewhere("not expected: .*|isonorm [a-z-]+ --[^;,:]*");
  const std::string own = std::regex_replace(message, elsewhere, "");
  for (std::sregex_iterator at(own.begin(), own.end(), option), end; at != end; ++at)
    if (!std::regex_search(helps[verb], std::regex(at->str() + "([^a-z0-9-]|$)"))) foreign += " " + at->str();
  return foreign;
}

// One line on stderr and nothing on stdout. The line has these words, and begins with the name of the verb or with the
// words themselves, where they say who speaks.
inline void check_refusal(const ChildResult& r, int code, const std::string& verb, const std::string& says) {
  INFO(r.out << r.err);
  CHECK(r.code == code);
  CHECK(r.out.empty());
  CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
  CHECK(r.err.starts_with(says.starts_with("isonorm") ? says : "isonorm " + verb + ": "));
  CHECK(contains(r.err, says));
  if (r.err.starts_with("isonorm " + verb + ": ")) CHECK(foreign_options(verb, r.err) == "");
}

// A folder with a text of a few letters, removed at the end. Commands are lines, in which "@name" is a file of the
// folder and "+small" stands for the options of the small model that the line does not give.
struct Folder : TempFolder {
  Folder() {
    std::string text;
    for (int i = 0; i < 400; ++i) text += {"abcd efg"[i * i % 7], "xyz "[i % 4]};
    write_text(file("text.txt"), text);
  }
  std::string file(const std::string& name) const { return *this / name; }
  nlohmann::json json(const std::string& name) const { return nlohmann::json::parse(read(file(name))); }
  // The objects that are the lines of a log.
  std::vector<nlohmann::json> lines(const std::string& log) const {
    std::vector<nlohmann::json> found;
    std::istringstream text(read(file(log)));
    for (std::string line; std::getline(text, line);) found.push_back(nlohmann::json::parse(line));
    return found;
  }

  Words words(const std::string& line) const {
    std::istringstream in(line);
    Words words;
    for (std::string word; in >> word;) {
      if (const size_t at = word.find('@'); at != word.npos) word.replace(at, 1, path.string() + "/");
      words.push_back(word);
    }
    const auto at = std::ranges::find(words, "+small");
    if (at == words.end()) return words;
    words.erase(at);
    const Words small = {"--model",   "gpt",     "--data", file("text.txt"), "--width", "8",       "--depth",
                         "1",         "--heads", "2",      "--context",      "8",       "--batch", "4",
                         "--threads", "1"};
    for (size_t i = 0; i < small.size(); i += 2)
      if (std::ranges::count(words, small[i]) == 0) words.insert(words.end(), {small[i], small[i + 1]});
    return words;
  }
  ChildResult run(const std::string& line, const ChildOptions& options = {}) const {
    return run_child(words(line), options);
  }
  // Runs the program, which must end with `code`.
  ChildResult gives(int code, const std::string& line, const ChildOptions& options = {}) const {
    const ChildResult r = run(line, options);
    INFO(line << "\n" << r.out << r.err);
    REQUIRE(r.code == code);
    return r;
  }
  ChildResult succeeds(const std::string& line, const ChildOptions& options = {}) const {
    return gives(0, line, options);
  }
  void refuses(const std::string& line, int code, const std::string& says, const ChildOptions& options = {}) const {
    INFO(line);
    check_refusal(run(line, options), code, line.substr(0, line.find(' ')), says);
  }
};

// A copy of a folder, with another value in its config.json.
inline std::string changed(const Folder& f, const std::string& folder, const std::string& key,
                           const nlohmann::json& value) {
  const std::string copy = f / "copy";
  std::filesystem::remove_all(copy);
  std::filesystem::copy(folder, copy);
  nlohmann::json config = nlohmann::json::parse(read(copy + "/config.json"));
  config[key] = value;
  write_text(copy + "/config.json", config.dump());
  return copy;
}

// The loss of a training of one step.
inline double first_loss(const Folder& f, const std::string& train) {
  std::filesystem::remove(f / "first");
  f.succeeds(train + " --steps 1 --warmup 0 -q --log @first");
  for (const nlohmann::json& line : f.lines("first"))
    if (line.contains("lr")) return line["loss"];
  return NAN;
}

}  // namespace isonorm

using namespace isonorm;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
