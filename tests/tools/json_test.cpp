// What --json writes has every number that the verb prints.
#include "core/printed.h"
#include "tests/tools/small_run.h"

using nlohmann::json;

namespace {

void collect(const json& j, std::vector<double>& numbers) {
  if (j.is_number()) numbers.push_back(j.get<double>());
  if (j.is_structured())
    for (const auto& entry : j) collect(entry, numbers);
}

// The numbers of a sentence, as it has them, that no number of the JSON is when it is printed like this.
std::string missing(const std::string& sentence, const json& object) {
  std::vector<double> numbers;
  collect(object, numbers);
  std::string all;
  const std::regex number("(^|[\\s(])(\\d+(\\.\\d+)?(e[-+]\\d+)?)( %)?(?=[\\s,;)]|\\.(\\s|$)|$)");
  for (std::sregex_iterator at(sentence.begin(), sentence.end(), number), end; at != end; ++at) {
    const std::string word = (*at)[2];
    const int decimals = static_cast<int>(std::max<ptrdiff_t>(0, (*at)[3].length() - 1));
    const bool scientific = (*at)[4].matched, percent = (*at)[5].matched;
    const bool found = std::ranges::any_of(numbers, [&](double x) {
      const double value = percent ? 100 * x : x;
      return printed(scientific ? "%.*e" : "%.*f", decimals, value) == word;
    });
    if (!found) all += " " + word;
  }
  return all;
}

}  // namespace

TEST_CASE("json: the numbers that a verb prints are in its JSON, unrounded") {
  const Folder f;
  f.succeeds("train +small -q --steps 30 --evaluate-every 10 --checkpoint @c --log @l");
  for (const char* line : {"evaluate @c --data @text.txt", "train +small -q --steps 30 --evaluate-every 10",
                           "train +small -q --steps 30 --data @text.txt --evaluate-every 10 --best @best",
                           "lr-find +small --steps 30", "plot @l", "prove +small -q --steps 3"}) {
    INFO(line);
    std::string said = f.succeeds(std::string(line) + " --json @json").out;
    said.erase(0, said.find(" bytes; the last 10 %") == said.npos ? 0 : said.find('\n'));  // which part of the file
    CHECK(missing(said, f.json("json")) == "");
  }
  f.succeeds("audit --checkpoint @c --json @json");
  const json audit = f.json("json");
  CHECK(missing(audit["sentence"], audit) == "");
  CHECK(audit["share"] == audit["directions"].get<double>() / audit["numbers"].get<double>());
  // exp of the loss, in f64.
  const json tested = (f.succeeds("evaluate @c --data @text.txt --json @json"), f.json("json"));
  CHECK(tested["perplexity"] == std::exp(tested["loss"].get<double>()));
  CHECK(tested["accuracy"] == tested["right"].get<double>() / tested["predictions"].get<double>());
  const json trained = (f.succeeds("train +small -q --steps 3 --json @json"), f.json("json")["test"]);
  CHECK(trained["perplexity"] == std::exp(trained["loss"].get<double>()));
  CHECK(trained["predictions"] == 72);  // nine windows of eight characters in the 80 that are held out
  CHECK(trained["accuracy"] == trained["right"].get<double>() / 72);
}

TEST_CASE("json: compare says how many tensors there are, differ, and how much of the tolerance they take") {
  const Folder f;
  f.succeeds("train +small -q --steps 2 --checkpoint @a");
  f.succeeds("train +small -q --steps 3 --checkpoint @b");
  f.succeeds("perturb @a @c");
  for (const auto& [other, differ] : {std::pair{"@c", 0}, {"@b", 11}}) {
    f.gives(differ > 0, text("compare @a ", other, " --json @json"));
    const json object = f.json("json");
    CHECK(object["compared"] == 11);
    CHECK(object["differing"] == differ);
    double share = 0;
    for (const json& row : object["tensors"])
      share = std::max(share, row["deviation"].get<double>() / row["tolerance"].get<double>());
    CHECK(object["largest_share"] == share);
  }
}
