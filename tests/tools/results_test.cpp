// What --json writes is what docs/results.md says: every field, with its kind, and no other.
#include <set>

#include "tests/tools/small_run.h"

using nlohmann::json;

namespace {

// The kinds of a result's fields by their paths, "runs[].deviation.loss", in the order of the page.
using Kinds = std::vector<std::pair<std::string, std::string>>;

std::map<std::string, Kinds> results_of(const std::string& page) {
  std::map<std::string, Kinds> all;
  std::string result;  // "": the fields that every result has
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("## ")) all[result = line.substr(3)];
    if (!line.starts_with("| `")) continue;
    const size_t name = line.find("` | "), kind = line.find(" | ", name + 4);
    all[result].emplace_back(line.substr(3, name - 3), line.substr(name + 4, kind - name - 4));
  }
  return all;
}

bool is_of_kind(const json& value, std::string kind) {
  if (kind.starts_with("list of ")) {
    std::string one = kind.substr(8);  // "numbers or null", "lists of values"
    one.erase(std::min(one.find(' '), one.size()) - 1, 1);
    return value.is_array() && std::ranges::all_of(value, [&](const json& v) { return is_of_kind(v, one); });
  }
  if (kind.ends_with(" or null")) {
    if (value.is_null()) return true;
    kind.resize(kind.size() - 8);
  }
  return kind == "value"     ? value.is_primitive()
         : kind == "string"  ? value.is_string()
         : kind == "boolean" ? value.is_boolean()
         : kind == "integer" ? value.is_number_integer()
         : kind == "number"  ? value.is_number()
         : kind == "object"  ? value.is_object()
                             : false;
}

// Calls take(value, where) for every value at a path of the page, unless an object or a list before it is null.
template <class Take>
void visit(const json& value, const std::string& path, const std::string& where, const Take& take) {
  if (path.empty()) return take(value, where);
  if (path.starts_with("[]")) {
    for (size_t i = 0; i < value.size(); ++i) visit(value[i], path.substr(2), text(where, '/', i), take);
    return;
  }
  const std::string rest = path.starts_with('.') ? path.substr(1) : path;
  if (value.is_null()) return;
  const size_t end = std::min(rest.find('.'), rest.find('['));
  const std::string name = rest.substr(0, end);
  if (!value.is_object() || !value.contains(name)) return take(json::value_t::discarded, where + "/" + name);
  visit(value[name], end == rest.npos ? "" : rest.substr(end), where + "/" + name, take);
}

// Says how the JSON of a result differs from its description; empty if it agrees.
std::string complaints(const json& result, const Kinds& own, const Kinds& common) {
  std::string all;
  std::set<std::string> known = {"schema"};
  const auto non_finite = result.value("non_finite", std::vector<std::string>());
  for (const Kinds* kinds : {&own, &common})
    for (const auto& [path, kind] : *kinds) {
      known.insert(path);
      visit(result, path, "", [&](const json& value, const std::string& where) {
        if (value.is_discarded())
          all += where + " is missing\n";
        else if (!is_of_kind(value, kind) && !std::ranges::count(non_finite, where))
          all += text(where, " is ", value.dump().substr(0, 100), ", expected ", kind, '\n');
      });
    }
  for (const auto& [name, _] : result.items())
    if (!known.contains(name)) all += name + " is not on the page\n";
  return all;
}

}  // namespace

TEST_CASE("results: docs/results.md is current") {
  const Folder f;
  INFO("run build/release/tools/isonorm man --results > docs/results.md");
  CHECK(f.succeeds("man --results").out == test::read_text("docs/results.md"));
}

TEST_CASE("results: a field that is missing, new or of another kind is found") {
  const Kinds own = {{"steps", "integer"},
                     {"best", "object or null"},
                     {"best.loss", "number"},
                     {"runs", "list of objects"},
                     {"runs[].losses", "list of numbers or null"}},
              common = {{"non_finite", "list of strings"}};
  const json good = {{"schema", "isonorm.x/1"},
                     {"steps", 3},
                     {"best", {}},
                     {"runs", {{{"losses", {1.5, nullptr}}}}},
                     {"non_finite", json::array()}};
  CHECK(complaints(good, own, common) == "");
  const auto changed = [&](const char* pointer, const json& value) {
    json bad = good;
    bad[json::json_pointer(pointer)] = value;
    return complaints(bad, own, common);
  };
  CHECK(changed("/best", {{"loss", 0.5}}) == "");
  CHECK(changed("/best", json::object()) == "/best/loss is missing\n");
  CHECK(changed("/steps", 3.5) == "/steps is 3.5, expected integer\n");
  CHECK(changed("/more", 1) == "more is not on the page\n");
  CHECK(changed("/runs/0/losses", "none") == "/runs/0/losses is \"none\", expected list of numbers or null\n");
  json infinite = good;
  infinite["steps"] = nullptr;
  CHECK(complaints(infinite, own, common) == "/steps is null, expected integer\n");
  infinite["non_finite"] = {"/steps"};
  CHECK(complaints(infinite, own, common) == "");
}

TEST_CASE("results: the JSON of every verb has the fields of its page") {
  const Folder f;
  const std::map<std::string, Kinds> page = results_of(test::read_text("docs/results.md"));
  std::set<std::string> seen = {""};
  const auto check_result = [&](const std::string& line, int code = 0) {
    INFO(line);
    f.gives(code, line + " --json @json");
    const json result = f.json("json");
    std::string name = result["schema"];
    REQUIRE(name.starts_with("isonorm."));
    REQUIRE(name.ends_with("/1"));
    name = name.substr(8, name.size() - 10);
    REQUIRE(page.contains(name));
    seen.insert(name);
    CHECK(complaints(result, page.at(name), page.at("")) == "");
    if (result.contains("verdict") && result.contains("first_difference"))
      for (const char* key : {"sentence", "likely_cause", "detectable"}) CHECK(result.contains(key));
    if (!line.starts_with("info")) CHECK(contains(result["command"], "isonorm " + line.substr(0, line.find(' '))));
  };
  f.succeeds("train +small --steps 2 -q --checkpoint @other");
  check_result("train +small --steps 6 --evaluate-every 2 --best @best --checkpoint @c --log @l");
  check_result("evaluate @c --data @text.txt");
  check_result("plot @l");
  check_result("lr-find +small --steps 20");
  check_result("info");
  check_result("info @c");
  check_result("info tests/fixtures/families/bloom");
  check_result("perturb @c @moved");
  check_result("export @c @c.onnx");
  check_result("import tests/fixtures/families/gpt2 @gpt2");
  check_result("tokenize tests/fixtures/tokenizers/gpt2 @text.txt @ids");
  check_result("sample @c abc --length 3 --count 2");
  check_result("experiment invariance");
  check_result("prove +small --steps 3");
  check_result("prove --certificate --architectures gpt2,vit9 --steps 8");
  check_result("table --optimizers sgd --steps 3 --seeds 1 --depth 1");
  check_result("audit --checkpoint @c");
  check_result("explain rms_norm 1,2,4 --gain 1,2,3 --gradcheck");
  check_result("compare @c @moved");
  check_result("compare @c @other", 1);
  check_result("verify @c @other", 1);
  check_result("convert @c @mapped --to crms_norm");
  check_result("verify @c @mapped");
  check_result("convert @c @rms --to rms_norm");
  check_result("rotate @rms @rotated --basis haar:1");
  for (const auto& [name, _] : page) {
    INFO(name);
    CHECK(seen.contains(name));
  }
}
