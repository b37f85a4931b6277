// Names of files that are far too long or deep: one line, no crash.
#include "streams/layout.h"
#include "tests/tools/small_run.h"

namespace {

std::string repeated(const std::string& part, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += part;
  return all;
}

}  // namespace

TEST_CASE("foreign names: braces and parts and lengths beyond the limit are refused in a spec and a map and a file") {
  const Folder f;
  const auto save = [&](const char* file, const std::string& name) {  // U8 [2], of another program
    const std::string header = R"({")" + name + R"(":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
    std::string length(8, '\0');
    for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i));
    write_text(f / file, length + header + "\1\2");
  };
  save("a", "w"), save("b", "w");
  const std::string deep = repeated("a.", 1000) + "a", braces = repeated("{a}", 40'000), longer(5000, 'x');
  for (const auto& [name, says] : {std::pair(deep, "has 1001 parts, expected at most 64"),
                                   {braces, "has 120000 bytes, expected at most 4096"},
                                   {longer, "has 5000 bytes, expected at most 4096"}}) {
    write_text(f / "spec.json", R"({"width": 2, "norms": {"n": 1e-5}, "writers": {")" + name +
                                    R"(": 0}, "readers": {"w": {"dim": 0, "norm": "n"}}})");
    f.refuses("convert @a @out --spec @spec.json --from layer_norm --to rms_norm", 3, says);
    write_text(f / "map.json", R"([{"a": ")" + name + R"(", "b": "w"}])");
    f.refuses("compare @a @b --map @map.json", 3, says);
    save("named", name);
    f.refuses("info @named", 3, says);
    TensorMap own;
    own.add(name, ones({2}));
    CHECK_THROWS_WITH(save_safetensors(f / "own", own), Contains(says));
    CHECK_FALSE(std::filesystem::exists(f / "own"));
  }
  // A pattern may have any number of braces that fits. Several braces expand to all combinations.
  const auto writers = [](const std::string& pattern) {
    std::vector<std::string> names;
    const streams::Layout layout = streams::Layout::from_json(R"({"width": 2, "norms": {"n": 1e-5}, "writers": {")" +
                                                              pattern + R"(": 0}, "readers": {}})");
    for (const auto& [name, entry] : layout.entries())
      if (entry.role == streams::Role::writer) names.push_back(name);
    return names;
  };
  CHECK(writers(repeated("{a}", 1000)) == std::vector{std::string(1000, 'a')});
  CHECK(writers("x.{a,b}.{c,d}{}.e") == std::vector<std::string>{"x.a.c.e", "x.a.d.e", "x.b.c.e", "x.b.d.e"});
  CHECK_THROWS_WITH(writers(repeated("{a,b}", 7)), Contains("expands to more than 64 patterns"));
}

TEST_CASE("foreign names: a key of a TOML file has at most 64 parts anywhere") {
  const Folder f;
  const std::string deep = repeated("a.", 100'000) + "a", quoted = repeated("\"a.b\" . ", 70) + "a";
  for (const std::string& lines : {deep + " = 1\n", "[" + deep + "]\n", "[[" + deep + "]]\n",
                                   "x = {" + deep + " = 1}\n", quoted + " = 1\n", "x = [{" + deep + " = 1}]\n"}) {
    write_text(f / "deep.toml", "width = 8  # a comment. with. dots\n" + lines);
    f.refuses("train --config @deep.toml", 2, "deep.toml: line 2: a key has more than 64 parts");
  }
  // A string that three quotes end has four or five at its end, if it ends with a quote.
  for (const std::string end : {"\"\"\"\"", "\"\"\"\"\"", "", "'"}) {
    write_text(f / "deep.toml", "form = " + end.substr(0, 3) + "rms_norm" + end + "\n" + deep + " = 1\n");
    f.refuses("train --config @deep.toml", 2, "deep.toml: line 2: a key has more than 64 parts");
  }
  for (const std::string& text :
       {"\"" + deep + "\"", "'" + deep + "'", "\"\"\"\n" + deep + "\"\"\"", "'''" + deep + "'''"}) {
    write_text(f / "text.toml", "# it's " + deep + "\nnothing = " + text + "\n");
    f.refuses("train --config @text.toml", 2, "text.toml: there is no option nothing");
  }
}
