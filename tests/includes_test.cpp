// The order of the sources: includes go one way, files stay small, and there is one macro.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "core/error.h"
#include "tests/support/catch.h"
#include "tests/support/read_text.h"

using isonorm::text;
using isonorm::test::read_text;
namespace fs = std::filesystem;

namespace {

using Set = std::set<std::string>;

// The rooms that each room may include besides itself. A room is a folder. A folder in a folder is a room of its own if
// it is named here. Folders that are not named (tools, examples, benchmarks, tests) may include everything.
const Set kBelowTraining = {"core",         "autograd", "nn",      "streams",     "optim",
                            "io",           "gpu",      "io/data", "distributed", "distributed/parallel",
                            "io/tokenizers"};
const Set kBelowEquivalence = {"core",
                               "autograd",
                               "nn",
                               "streams",
                               "optim",
                               "io",
                               "io/data",
                               "reports",
                               "distributed",
                               "training",
                               "training/models",
                               "training/options",
                               "training/records",
                               "training/spec",
                               "training/steps"};

Set operator+(Set a, const Set& b) {
  a.insert(b.begin(), b.end());
  return a;
}

std::map<std::string, Set> allowed_includes() {
  std::map<std::string, Set> allowed = {
      {"core", {}},
      {"gpu", {"core", "tests/emulated_gpu", "tests/emulated_gpu/libraries"}},
      {"gpu/libraries", {"core", "gpu", "tests/emulated_gpu/libraries"}},
      {"gpu/kernels", {"core", "gpu", "gpu/libraries"}},
      {"tests/emulated_gpu", {"core"}},
      {"tests/emulated_gpu/libraries", {"core", "gpu/libraries", "tests/emulated_gpu"}},
      {"autograd", {"core"}},
      {"nn", {"core", "autograd"}},
      {"optim", {"core", "autograd"}},
      {"streams", {"core", "autograd", "nn", "io"}},
      {"io", {"core"}},
      {"exchange/hub", {"core", "io", "streams", "io/tokenizers"}},
      {"exchange/onnx", {"core", "io", "nn", "streams", "training"}},
      {"exchange",
       {"core", "autograd", "io", "io/tokenizers", "nn", "streams", "training", "training/spec", "exchange/hub",
        "exchange/onnx"}},
      {"io/data", {"core"}},
      {"io/tokenizers", {"core", "io"}},
      {"reports", {"core"}},
      {"distributed", {"core"}},
      {"distributed/parallel", {"core", "autograd", "nn", "optim", "distributed"}},
      {"training/options", {"core"}},
      {"training", kBelowTraining + Set{"training/options", "training/spec", "training/steps"}},
      {"training/spec", {"core", "io", "io/data"}},
      {"training/steps", kBelowTraining},
      {"training/run", kBelowTraining + Set{"reports", "training", "training/models", "training/options",
                                            "training/records", "training/spec", "training/steps"}},
      {"training/models", kBelowTraining + Set{"training", "training/options", "training/spec", "training/steps"}},
      {"training/records", kBelowTraining + Set{"reports", "training", "training/models", "training/options",
                                                "training/spec", "training/steps"}}};
  const std::map<std::string, Set> rooms = {
      {"coordinates", {}},
      {"judge", {"coordinates"}},
      {"lockstep", {"coordinates", "judge"}},
      {"grid", {"coordinates", "judge", "lockstep"}},
      {"convert", {"coordinates", "judge"}},
      {"verify", {"coordinates", "judge", "convert"}},
      {"reference", {"coordinates", "judge", "convert"}},
      {"explain", {"coordinates", "judge", "convert"}},
      {"causes", {"coordinates", "judge", "lockstep", "convert", "explain"}},
      {"compare", {"coordinates", "judge", "lockstep", "convert", "verify", "explain", "causes"}},
      {"text", {"judge", "lockstep", "grid", "compare"}}};
  for (const auto& [room, others] : rooms) {
    Set& set = allowed["equivalence/" + room] = kBelowEquivalence;
    for (const std::string& other : others) set.insert("equivalence/" + other);
  }
  Set below_services = kBelowEquivalence + Set{"exchange/hub", "gpu", "io/tokenizers", "training/run"};
  for (const auto& [room, others] : rooms) below_services.insert("equivalence/" + room);
  allowed["equivalence/services"] = below_services;
  // Python's names for the library: no verb of the program.
  Set below_python = below_services + Set{"equivalence/services"};
  allowed["python"] = below_python;
  // The laboratory: all of the library is below it, so it may include the umbrella header as a program does.
  Set below_lab = kBelowEquivalence + Set{"distributed/parallel", "isonorm.h"};
  for (const auto& [room, others] : rooms) below_lab.insert("equivalence/" + room);
  allowed["lab/probes"] = below_lab;
  allowed["lab/certificate"] = below_lab + Set{"lab/probes"};
  for (const char* room : {"images", "nets", "timing"}) allowed["lab/papers/" + std::string(room)] = below_lab;
  allowed["lab/papers"] = below_lab + Set{"lab/probes", "lab/papers/images", "lab/papers/nets", "lab/papers/timing"};
  allowed["lab/papers/initial"] = below_lab + Set{"lab/papers", "lab/papers/nets"};
  return allowed;
}

const std::map<std::string, Set> kAllowed = allowed_includes();

// The room of a file: the innermost of its folders that is named above, else the outermost one.
std::string room_of(const std::string& path) {
  std::string folder = path.substr(0, path.rfind('/'));
  while (!kAllowed.count(folder) && folder.find('/') != folder.npos) folder.resize(folder.rfind('/'));
  return folder;
}

struct Source {
  std::string path, content;
  Set includes;       // quoted ones
  Set others;         // <angled> ones
  std::string first;  // quoted one, in the order of the file
};

// The texts after the directive `#name` in a source.
std::vector<std::string> directives(const std::string& content, const std::string& name) {
  std::vector<std::string> found;
  std::istringstream lines(content);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first, rest;
    words >> first;
    if (first == "#") words >> rest, first += rest;
    if (first == "#" + name && words >> rest) found.push_back(rest);
  }
  return found;
}

std::vector<Source> sources() {
  std::vector<Source> all;
  const auto add = [&](const fs::path& path) {
    const std::string ending = path.extension().string();
    if (!Set{".h", ".cpp", ".cu", ".cuh", ".cmake", ".py"}.count(ending) && path.filename() != "CMakeLists.txt") return;
    Source s{path.generic_string(), read_text(path.string()), {}, {}, {}};
    for (const std::string& include : directives(s.content, "include")) {
      const bool quoted = include.front() == '"';
      const std::string name = include.substr(1, include.find(quoted ? '"' : '>', 1) - 1);
      if (quoted && s.first.empty()) s.first = name;
      (quoted ? s.includes : s.others).insert(name);
    }
    all.push_back(std::move(s));
  };
  for (const char* folder : {"core",        "autograd",   "nn",    "streams",     "optim",    "io",     "reports",
                             "distributed", "training",   "gpu",   "equivalence", "exchange", "lab",    "tools",
                             "examples",    "benchmarks", "tests", "scripts",     "cmake",    "course", "python"})
    if (fs::exists(folder))
      for (fs::recursive_directory_iterator entry(folder), end; entry != end; ++entry) {
        if (entry->path().filename() == "build") entry.disable_recursion_pending();  // sources of a lab of the course
        if (entry->is_regular_file()) add(entry->path());
      }
  add("isonorm.h");
  return all;
}

// A circle of includes that `path` is part of or leads to, as text; empty where there is none.
std::string circle_from(const std::string& path, const std::map<std::string, Set>& includes,
                        std::map<std::string, int>& state, std::vector<std::string>& trail) {
  if (state[path] == 2) return {};
  trail.push_back(path);
  if (state[path] == 1) {
    std::string s;
    for (auto i = std::find(trail.begin(), trail.end(), path); i != trail.end(); ++i)
      s += (s.empty() ? "" : " -> ") + *i;
    return s;
  }
  state[path] = 1;
  if (const auto at = includes.find(path); at != includes.end())
    for (const std::string& next : at->second) {
      const std::string circle = circle_from(next, includes, state, trail);
      if (!circle.empty()) return circle;
    }
  state[path] = 2;
  trail.pop_back();
  return {};
}

}  // namespace

TEST_CASE("includes go one way") {
  const std::vector<Source> all = sources();
  CHECK(all.size() > 100);
  for (const Source& s : all) {
    const std::string room = room_of(s.path);
    CHECK(room != "equivalence");  // which has rooms alone
    const auto allowed = kAllowed.find(room);
    for (const std::string& include : s.includes) {
      INFO(s.path << " includes " << include);
      if (allowed == kAllowed.end() || s.path.ends_with(".py")) continue;
      CHECK(fs::exists(include));  // by its path from the root
      const std::string other = room_of(include);
      CHECK((other == room || allowed->second.count(other)));
    }
  }
}

// Newer standard libraries include less in their own headers. Precompiled headers and older libraries hide that an
// include is missing.
TEST_CASE("a source that calls an algorithm includes <algorithm>, or its own header does") {
  const Set algorithms = {"all_of",      "any_of",       "clamp",       "copy_if",     "count",          "count_if",
                          "find",        "find_if",      "max_element", "min_element", "minmax_element", "none_of",
                          "nth_element", "partial_sort", "replace",     "reverse",     "rotate",         "shuffle",
                          "sort",        "stable_sort",  "transform",   "unique",      "upper_bound"};
  const std::vector<Source> all = sources();
  Set including;
  for (const Source& s : all)
    if (s.content.find("#include <algorithm>") != s.content.npos) including.insert(s.path);
  const std::string_view letters = "abcdefghijklmnopqrstuvwxyz_";
  for (const Source& s : all) {
    if (s.path.starts_with("tests/") || including.count(s.path) || including.count(s.first)) continue;
    for (size_t at = 0; (at = s.content.find("std::", at)) != s.content.npos;) {
      at += 5;
      if (s.content.compare(at, 8, "ranges::") == 0) at += 8;
      const size_t end = s.content.find_first_not_of(letters, at);
      const std::string name = s.content.substr(at, end - at);
      INFO(s.path << " calls " << name);
      CHECK_FALSE((algorithms.count(name) && end < s.content.size() && s.content[end] == '('));
    }
  }
}

TEST_CASE("no header includes itself by a detour") {
  std::map<std::string, Set> includes;
  for (const Source& s : sources()) includes[s.path] = s.includes;
  std::map<std::string, int> state;
  for (const auto& [path, ignored] : includes) {
    std::vector<std::string> trail;
    CHECK(circle_from(path, includes, state, trail) == "");
  }
}

// Every script that includes isonorm.h compiles the headers that it includes.
TEST_CASE("isonorm.h brings no threads, streams and other large headers of the standard library") {
  const Set large = {
      "any",     "condition_variable", "filesystem", "fstream", "future", "iostream", "random", "ranges", "regex",
      "sstream", "semaphore",          "stop_token", "thread"};
  std::map<std::string, Source> by_path;
  for (Source& s : sources()) by_path[s.path] = std::move(s);
  Set seen = {"isonorm.h"};
  for (std::vector<std::string> next = {"isonorm.h"}; !next.empty();) {
    const Source s = by_path[next.back()];
    next.pop_back();
    for (const std::string& header : s.others) {
      INFO(s.path << " includes <" << header << ">");
      CHECK_FALSE(large.count(header));
    }
    for (const std::string& include : s.includes)
      if (seen.insert(include).second) next.push_back(include);
  }
  CHECK(seen.size() > 100);
}

TEST_CASE("no room has over 20 sources") {
  std::map<std::string, int> count;
  for (const Source& s : sources())
    if (s.path.ends_with(".h") || s.path.ends_with(".cpp")) ++count[s.path.substr(0, s.path.rfind('/'))];
  for (const auto& [room, sources] : count) {
    if (room != "core" && !room.starts_with("gpu") && !room.starts_with("reports") && !room.starts_with("training") &&
        !room.starts_with("equivalence"))
      continue;
    INFO(room << " has " << sources);
    CHECK(sources <= 20);
  }
}

TEST_CASE("no file is over 500 lines") {
  for (const Source& s : sources()) {
    INFO(s.path);
    CHECK(std::count(s.content.begin(), s.content.end(), '\n') <= 500);
  }
}

// A source implements the header that it includes first: the header of its own stem (x.cpp the x.h beside it,
// core/cpu/x.cpp the slots of core/kernels/x.h), or one of the headers below, which several sources beside it
// implement.
TEST_CASE("one stem, one subject") {
  // Sources that do not, yet: parts of a subject whose header has another stem.
  const Set excepted = {"audit_text.cpp", "compare_states.cpp", "compare_tensors_document.cpp",
                        "compare_trajectories.cpp", "verification.cpp"};
  const std::map<std::string, Set> in_parts = {
      {"core/cpu/bf16/products.h", {"attention", "mlp"}},
      {"core/kernels/attention.h", {"rotary"}},
      {"core/kernels/images.h", {"conv", "conv_direct", "pool", "resample"}},
      {"core/kernels/loss.h", {"softmax"}},
      {"core/kernels/norm.h", {"group_norm"}},
      {"core/kernels/random.h", {"dropout"}},
      {"autograd/ops/images.h", {"conv", "interpolate", "pool"}},
      {"autograd/ops/index.h", {"statistics"}},
      {"autograd/ops/matmul.h", {"einsum"}},
      {"autograd/ops/shape.h", {"arrange"}},
      {"distributed/transport.h", {"mpi"}},
      {"distributed/world.h", {"threads"}},
      {"equivalence/causes/cause.h", {"parting", "stream_cause", "update_cause"}},
      {"equivalence/grid/expectation.h", {"visible"}},
      {"equivalence/judge/result_fields.h", {"grid_result", "proof_result"}},
      {"equivalence/text/proof_text.h", {"proof_figures"}},
      {"io/data/decoder.h", {"jpeg", "png"}},
      {"io/data/published_sets.h", {"cifar10", "fashion_mnist", "idx"}},
      {"io/safetensors.h", {"safetensors_header"}},
      {"io/tokenizers/steps.h", {"added_tokens", "nfc", "pattern"}},
      {"io/torch_file.h", {"pickle"}},
      {"io/unfinished.h", {"name_lock"}},
      {"lab/certificate/certificate.h", {"certificate_figures", "certificate_text", "certificate_verdict"}},
      {"lab/probes/point_errors.h", {"point_verdict"}},
      {"python/bindings.h", {"files", "outside", "tensor"}},
      {"reports/svg.h", {"svg_dots"}},
      {"streams/layout.h", {"layout_json"}},
      {"streams/plan.h", {"check_plan"}},
      {"training/run/trainer.h", {"trainer_start"}}};
  for (const Source& s : sources()) {
    if (!kAllowed.count(room_of(s.path)) || !s.path.ends_with(".cpp")) continue;
    if (excepted.count(fs::path(s.path).filename().string())) continue;
    if (s.path.starts_with("lab/papers/")) continue;                     // a function each, declared in experiment.h
    if (s.path == "gpu/none.cpp" || s.path == "gpu/bind.cpp") continue;  // two definitions of start_cuda()
    // A row each, all of them declared in training/model_row.h; parts of folder.h, gguf.h and port.h.
    if (s.path.starts_with("training/models/") || s.path.starts_with("exchange/hub/")) continue;
    if (s.path == "python/module.cpp") continue;  // the module itself
    fs::path header = fs::path(s.path).replace_extension(".h");
    if (header.parent_path() == "core/cpu") header = "core/kernels" / header.filename();
    INFO(s.path);
    if (header.generic_string() == s.first) continue;
    const auto parts = in_parts.find(s.first);
    CHECK(parts != in_parts.end());
    CHECK((parts == in_parts.end() || parts->second.count(header.stem().string())));
  }
}

// The C library's and the streams' functions for numbers follow the locale: core/printed.h has those that do not. The
// parser of the command line uses them for numbers: tools/options.h adds options for those.
TEST_CASE("numbers become text and text becomes numbers in core/printed.h") {
  const char* const by_locale[] = {"strtod(",         "strtof(",        "strtold(",
                                   "strtol(",         "strtoul(",       "strtoll(",
                                   "strtoull(",       "stod(",          "stof(",
                                   "stold(",          "stoi(",          "stol(",
                                   "stoul(",          "stoll(",         "stoull(",
                                   "atof(",           "atoi(",          "atol(",
                                   "atoll(",          "printf(",        "snprintf(",
                                   "vsnprintf(",      "sprintf(",       "fprintf(",
                                   "scanf(",          "sscanf(",        "fscanf(",
                                   "ostringstream",   "stringstream",   "ofstream",
                                   "from_chars(",     "to_chars(",      "setlocale(",
                                   "std::locale",     "std::to_string", "CLI::Number",
                                   "CLI::Range",      "CLI::Bound",     "CLI::PositiveNumber",
                                   "CLI::AsSizeValue"};
  for (const Source& s : sources()) {
    const bool judged =
        kAllowed.count(room_of(s.path)) || s.path.starts_with("tools/") || s.path.starts_with("python/");
    if (!judged || s.path.starts_with("tests/") || s.path.ends_with(".py") || s.path == "core/printed.h") continue;
    for (const std::string word : by_locale)
      for (size_t at = 0; (at = s.content.find(word, at)) != s.content.npos; at += word.size()) {
        const char before = at == 0 ? ' ' : s.content[at - 1];
        const size_t line = s.content.rfind('\n', at) + 1;
        const bool comment = s.content.substr(line, at - line).find("//") != std::string::npos;
        if (std::isalnum(static_cast<unsigned char>(before)) || before == '_' || comment) continue;
        FAIL_CHECK(s.path << " has " << word << " in: " << s.content.substr(line, s.content.find('\n', at) - line));
      }
  }
}

TEST_CASE("ISO_HD is the only macro") {
  for (const Source& s : sources()) {
    if (s.path.ends_with(".py") || s.path.ends_with(".cmake")) continue;
    for (const std::string& definition : directives(s.content, "define")) {
      const std::string name = definition.substr(0, definition.find('('));
      INFO(s.path << " defines " << name);
      if (s.path == "tests/emulated_gpu/words.h" && name.starts_with("__")) continue;  // CUDA's own
      CHECK(
          (name == "ISO_HD" || name.starts_with("CATCH_CONFIG_")));  // the latter is how Catch2 is asked for its runner
    }
  }
}
