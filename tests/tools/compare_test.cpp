// isonorm compare as a person runs it: exit codes, messages, maps and what a map file may not say.
#include <fstream>
#include <nlohmann/json.hpp>

#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "core/random.h"
#include "io/safetensors.h"
#include "streams/coordinates.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"
#include "tests/tools/child.h"

using namespace isonorm;
using Catch::Matchers::Contains;

TEST_CASE("compare: 0, 1, 2, 3 and 4, each with its one line") {
  const TempFolder folder;
  manual_seed(1);
  const Tensor w = randn({4, 3}, {DType::f64});
  const auto save = [&](const char* name, const char* tensor, const Tensor& value) {
    TensorMap m;
    m.add(tensor, value);
    save_safetensors(folder / name, m);
    return folder / name;
  };
  const std::string a = save("a", "proj.weight", w), twin = save("twin", "proj.weight", w),
                    mapped = save("mapped", "c_proj.weight", streams::recentre(w, 0)),
                    other = save("other", "proj.weight", w * 2.0);
  std::ofstream(folder / "map.json") << R"([{"a": "proj.*", "b": "c_proj.*", "map": "recentre", "dim": 0}])";
  std::ofstream(folder / "bad.json") << R"([{"a": "proj.*", "map": "project"}])";

  const ChildResult same = run_child({"compare", a, mapped, "--map", folder / "map.json"});
  CHECK(same.code == 0);
  CHECK_THAT(same.out, Contains("same: 1 tensor"));
  const ChildResult bits = run_child({"compare", a, twin});
  CHECK(bits.code == 0);
  CHECK_THAT(bits.out, Contains("equal to the last bit"));

  const ChildResult different = run_child({"compare", a, other, "--json", folder / "r.json"});
  CHECK(different.code == 1);
  CHECK_THAT(different.out, Contains("  proj.weight [4, 3]  1.0e+00\ndifferent: proj.weight[0, 1] is ") &&
                                Contains("likely a factor of 2"));
  std::ifstream file(folder / "r.json");
  CHECK(nlohmann::json::parse(file)["verdict"] == "different");
  const ChildResult itself = run_child({"compare", a, a});
  CHECK(itself.code == 2);  // no verdict: nothing was compared
  CHECK_THAT(itself.err, Contains("are one file"));
  CHECK(run_child({"compare", a, mapped}).code == 1);

  CHECK(run_child({"compare", a}).code == 2);
  for (const char* tolerance : {"-1", "1", "nan", "inf"}) {  // of 1, anything is the same
    const ChildResult refused = run_child({"compare", a, other, "--tolerance", tolerance});
    CHECK(refused.code == 2);
    CHECK_THAT(refused.err, Contains("--tolerance"));
  }
  const ChildResult bad = run_child({"compare", a, mapped, "--map", folder / "bad.json"});
  CHECK(bad.code == 3);
  CHECK_THAT(bad.err, Contains("bad.json: parameter map: no map is called 'project'"));
  CHECK(run_child({"compare", a, folder / "map.json"}).code == 3);
  CHECK(run_child({"compare", a, folder / "missing"}).code == 4);
}

TEST_CASE("compare: 5 where a small gradient differs, 0 where --noise names it") {
  const TempFolder folder;
  const auto save = [&](const char* name, double bias) {
    TensorMap m;
    m.add("h.0.attn.bias", from_vector<double>({bias, -bias}, {2}));
    m.add("h.0.attn.weight", from_vector<double>({1, 2}, {2}));
    save_safetensors(folder / name, m);
    return folder / name;
  };
  const std::string a = save("a", 1e-15), b = save("b", -1e-16);
  const ChildResult undecided = run_child({"compare", "--gradients", a, b, "--json", folder / "r.json"});
  CHECK(undecided.code == 5);
  CHECK_THAT(undecided.out, Contains("  h.0.attn.bias [2]  not comparable: below 2.2e-13") &&
                                Contains("\nundecided: h.0.attn.bias is not comparable") &&
                                Contains("(1 of 2 tensors; the others agree)"));
  std::ifstream file(folder / "r.json");
  CHECK(nlohmann::json::parse(file)["verdict"] == "undecided");
  CHECK(run_child({"compare", a, b}).code == 1);
  const ChildResult named = run_child({"compare", "--gradients", "--noise", "x.*", "--noise", "h.*.attn.bias", a, b});
  CHECK(named.code == 0);
  CHECK_THAT(named.out, Contains("1 taken for noise as named"));
  CHECK(run_child({"compare", "--noise", "*", a, b}).code == 2);
  CHECK(run_child({"compare", "--gradients", "--noise", "", a, b}).code == 2);
  CHECK_THAT(run_child({"compare", "--help"}).out, Contains("5 undecided"));
}

TEST_CASE("perturb and compare: a file beside controls") {
  const TempFolder folder;
  TensorMap m;
  Generator g{2, 0};
  m.add("w", randn({6, 5}, {DType::f32}, g));
  m.add("ids", from_vector<int64_t>({1, 2}, {2}));
  save_safetensors(folder / "a", m);
  for (const char* seed : {"1", "2", "3"})
    CHECK_THAT(run_child({"perturb", folder / "a", folder / ("c" + std::string(seed)), "--seed", seed}).out,
               Contains("1 tensors moved by 1 ulp, 1 of other dtypes as they were."));
  TensorMap off;
  off.add("w", m.at("w") * (1 + 5e-5)), off.add("ids", m.at("ids"));
  save_safetensors(folder / "off", off);
  CHECK(run_child({"compare", folder / "a", folder / "off"}).code == 0);  // by the tolerance that knows no control
  const std::vector<std::string> controls = {"--control", folder / "c1", "--control", folder / "c2"};
  const auto compare = [&](const std::string& b, std::vector<std::string> more) {
    std::vector<std::string> words = {"compare", folder / "a", folder / b};
    words.insert(words.end(), more.begin(), more.end());
    return run_child(words);
  };
  CHECK(compare("off", controls).code == 1);
  CHECK(compare("c3", controls).code == 0);
  CHECK(compare("off", {"--control", folder / "a"}).code == 5);
  CHECK(compare("c3", {"--control", folder / "c1", "--tolerance", "1e-3"}).code == 2);
  CHECK(compare("c3", {"--control", folder / "none"}).code == 4);
  CHECK(run_child({"perturb", folder / "a", folder / "a"}).code == 2);
  CHECK(run_child({"perturb", folder / "a", folder / "d", "--ulp", "0"}).code == 2);
}
