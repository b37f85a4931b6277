// isonorm sample prints whole characters: the bytes of one that is unfinished when the text ends are left out.
#include "core/system/foreign_text.h"
#include "nn/gpt.h"
#include "tests/tools/small_run.h"

namespace {

const std::string kE = "\xc3\xa9", kSun = "\xe6\x97\xa5";  // two and three bytes

// A model of the five bytes of both characters: each byte is followed by the next one, the last by the first.
void save_cycle(const std::string& path) {
  nn::GptOptions options;
  options.vocab = 5, options.context = 8;
  options.transformer.width = 8, options.transformer.depth = 1, options.transformer.heads = 2;
  nn::Gpt model(options);
  TensorMap state;
  for (const auto& [name, tensor] : model.state_dict()) {
    std::vector<float> values(static_cast<size_t>(tensor.numel()), 0.f);
    for (size_t id = 0; id < 5; ++id) {
      if (name == "token.weight") values[id * 8 + id] = 1;
      if (name == "head.weight") values[(id + 1) % 5 * 8 + id] = 10;
    }
    state.add(name, from_vector(values, tensor.shape()));
  }
  model.load_state_dict(state);
  training::save_model(path, model, training::kModels, {.alphabet = data::Alphabet(kE + kSun)});
}

bool is_whole(const std::string& s) { return whole_characters(s).size() == s.size(); }

}  // namespace

TEST_CASE("sample: an unfinished character at the end of the text is left out") {
  const Folder f;
  save_cycle(f / "model");
  const auto sampled = [&](const std::string& prompt, const std::string& options) {
    const ChildResult r = run_child(Words{"sample", f / "model", prompt} + f.words(options + " --temperature 0 -q"));
    INFO(prompt << " " << options << "\n" << r.err);
    REQUIRE(r.code == 0);
    return r.out;
  };
  CHECK(sampled(kE, "--length 1") == kE + "\n");
  CHECK(sampled(kE, "--length 2") == kE + "\n");
  CHECK(sampled(kE, "--length 3") == kE + kSun + "\n");
  CHECK(sampled(kE, "--length 4") == kE + kSun + "\n");
  CHECK(sampled(kE, "--length 5") == kE + kSun + kE + "\n");
  CHECK(sampled(kE, "--length 1 --count 2") == kE + "\n\n" + kE + "\n");
  CHECK(sampled(kE, "--length 9 --count 2") == kE + kSun + kE + kSun + "\n\n" + kE + kSun + kE + kSun + "\n");
  // A stop word; one that is a part of a character.
  CHECK(sampled(kE, "--length 9 --stop " + kSun) == kE + "\n");
  CHECK(sampled(kE, "--length 4 --stop " + kE) == kE + kSun + "\n");
  CHECK(sampled(kE, "--length 9 --stop \x97") == kE + "\n");
  CHECK(sampled(kE, "--length 2 --stop " + kSun + "x") == kE + "\n");
  // The prompt ends within a character.
  CHECK(sampled(kE + "\xe6", "--length 1") == kE + "\n");
  CHECK(sampled(kE + "\xe6", "--length 2") == kE + kSun + "\n");
  // Bytes that are never a character are printed as they are.
  CHECK(sampled("\xa5\xc3", "--length 1") == "\xa5" + kE + "\n");
}

TEST_CASE("sample: an interrupted text ends with a whole character") {
  const Folder f;
  save_cycle(f / "model");
  for (int i = 0; i < 5; ++i) {
    const ChildResult r =
        f.gives(130, "sample @model " + kE + " --length 1000000000 --temperature 0 -q", {.interrupt_after = kSun + kE});
    CHECK(is_whole(r.out));
    CHECK(r.out.ends_with("\n"));
    CHECK(is_whole(r.out.substr(0, r.out.size() - 1)));
  }
}
