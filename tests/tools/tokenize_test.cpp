// Text to token ids and back by the program, and a model that was trained on them and continues a text.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "tests/tools/small_run.h"
#include "io/tokenizers/tokenizer.h"

using Catch::Matchers::EndsWith;
using nlohmann::json;

namespace {

const std::string kFolder = "tests/fixtures/tokenizers/";

std::string little_endian(const std::vector<uint32_t>& ids, int bytes) {
  std::string all;
  for (uint32_t id : ids)
    for (int i = 0; i < bytes; ++i) all += static_cast<char>(id >> 8 * i);
  return all;
}

}  // namespace

TEST_CASE("tokenize: a file of ids as train reads it, and the text again") {
  const Folder f;
  const std::string words = test::read_text("docs/training.md") + "caf\u00e9 \xff\xfe <|endoftext|>\n";
  write_text(f / "words", words);
  // The same tokenizer with an id for which u16 is too small.
  std::string json = test::read_text(kFolder + "gpt2/tokenizer.json");
  json.replace(json.find("\"!\":0,"), 6, "\"!\":70000,");
  write_text(f / "wide.json", json);
  for (const auto& [tokenizer, bytes, vocab] : {std::tuple{kFolder + "llama3", 2, 702},
                                                {kFolder + "gpt2_pair/vocab.json", 2, 701},
                                                {f / "wide.json", 4, 70001}}) {
    INFO(tokenizer);
    const std::vector<uint32_t> ids = tokenizers::Tokenizer(tokenizer).encode(words);
    const std::string out = f.succeeds(text("tokenize ", tokenizer, " @words @ids")).out;
    CHECK(out == text(f / "ids", ": ", ids.size(), " tokens, u", 8 * bytes, ", for --token-vocab ", vocab, ".\n"));
    CHECK(read(f / "ids") == little_endian(ids, bytes));
    f.succeeds(text("tokenize --decode ", tokenizer, " @ids @again"));
    CHECK(read(f / "again") == words);
  }
  write_text(f / "words", "");
  f.succeeds("tokenize " + kFolder + "gpt2 @words @ids");
  CHECK(read(f / "ids").empty());
}

TEST_CASE("tokenize: a refusal leaves the old file") {
  const Folder f;
  write_text(f / "kept", "kept");
  write_text(f / "odd", "abc");
  write_text(f / "high", little_endian({1, 701}, 2));
  const std::string decode = "tokenize --decode " + kFolder + "gpt2 ";
  f.refuses(decode + "@odd @kept --ids u16", 3, "odd: the file has 3 bytes, ids of u16 have 2 each");
  f.refuses(decode + "@odd @kept", 3, "odd: is a text, and ids of 701 tokens are expected: isonorm tokenize TOKENIZER");
  f.refuses(decode + "@high @kept", 3, "no token has the id 701");
  f.refuses("tokenize " + kFolder + "gpt2 @none @kept", 4, "none: cannot open");
  f.refuses("tokenize @none @odd @kept", 2, "none");
  f.refuses("tokenize @odd @odd @kept", 3, "json: ");
  f.refuses(decode + "@odd @odd", 2, "odd");
  CHECK(read(f / "kept") == "kept");
  CHECK(f.files() == 4);  // text.txt and these
}

TEST_CASE("tokenize: a text that becomes shorter while it is read is an error") {
  const Folder f;
  std::string words;
  while (words.size() < 4000000) words += "the text of a test, ";
  write_text(f / "words", words);
  REQUIRE(mkfifo((f / "pipe").c_str(), 0600) == 0);
  // The program writes its first megabyte of ids and waits for a reader, who first makes the text shorter.
  std::thread reader([&] {
    const int pipe = open((f / "pipe").c_str(), O_RDONLY | O_CLOEXEC);
    std::vector<char> ids(1 << 16);
    if (::read(pipe, ids.data(), 1) == 1) std::filesystem::resize_file(f / "words", 0);
    while (::read(pipe, ids.data(), ids.size()) > 0) {
    }
    close(pipe);
  });
  const ChildResult r = f.run("tokenize " + kFolder + "gpt2 @words @pipe");
  close(open((f / "pipe").c_str(), O_WRONLY | O_NONBLOCK));  // if the program has not opened it, the reader still waits
  reader.join();
  check_refusal(r, 4, "tokenize", f / "words" + ": the file became shorter while it was read");
}

TEST_CASE("sample: a token model and a byte model continue a text") {
  const Folder f;
  const std::string tokenizer = kFolder + "gpt2";
  f.succeeds("tokenize " + tokenizer + " docs/training.md @ids");
  f.succeeds("train +small --data @ids --token-vocab 701 --steps 2 -q --checkpoint @tokens");
  f.succeeds("train +small --steps 2 -q --checkpoint @bytes");
  const std::string of_tokens = "sample @tokens Checkpoint --tokenizer " + tokenizer,
                    of_bytes = "sample @bytes abc --length 30";
  const std::string first = f.succeeds(of_tokens).out;
  CHECK_THAT(first, StartsWith("Checkpoint"));
  CHECK(f.succeeds(of_tokens).out == first);
  CHECK(f.succeeds(of_tokens + " --seed 1").out != first);
  CHECK(f.succeeds(of_tokens + " --temperature 0").out == f.succeeds(of_tokens + " --top-k 1 --seed 1").out);
  const std::string line = f.succeeds(of_bytes).out;
  CHECK_THAT(line, StartsWith("abc"));
  CHECK(line.size() == 3 + 30 + 1);
  CHECK(line.find_first_not_of("abcdefgxyz \n") == line.npos);

  f.refuses(of_tokens + " --length 0", 2, "--length: \"0\" is not a whole number from 1 to 9223372036854775807; see");
  f.refuses(of_tokens + " --top-k -1", 2, "--top-k: \"-1\" is not a whole number from 0 to 9223372036854775807");
  f.refuses(of_tokens + " --temperature -1", 2, "--temperature: \"-1\" is not a number from 0 on");
  CHECK(f.succeeds(of_bytes + " --data @text.txt").out == line);
  f.refuses("sample @tokens abc", 2, "has no tokenizer and no alphabet: --tokenizer, --data or --ids is needed");
  f.refuses(of_tokens + " --data @text.txt", 2, "--tokenizer, --data and --ids exclude each other");
  f.refuses("sample @bytes abc --tokenizer " + tokenizer, 3, "its vocabulary has 7 ids, the one of");
  f.refuses("sample @tokens abc --data @text.txt", 3, "its vocabulary has 701 ids, the one of");
}

TEST_CASE("sample: the tokenizer's end token ends a text, unless --ignore-eos is given") {
  const Folder f;
  const std::string tokenizer = kFolder + "gpt2";
  std::string text;
  for (int i = 0; i < 60; ++i) text += "one two<|endoftext|>";
  write_text(f / "text", text);
  f.succeeds("tokenize " + tokenizer + " @text @ids");
  f.succeeds("train +small --data @ids --token-vocab 701 --tokenizer " + tokenizer +
             " --width 16 --steps 150 --lr 0.01 -q --checkpoint @c");
  const std::string sample = "sample @c one --temperature 0 --length 40 -q";
  CHECK(f.succeeds(sample).out == "one two\n");
  CHECK(f.succeeds(sample + " --count 2").out == "one two\n\none two\n");
  CHECK_THAT(f.succeeds(sample + " --ignore-eos").out, StartsWith("one two<|endoftext|>one two<|endoftext|>"));
  CHECK(f.words(f.succeeds("sample @c 0 --ids --length 40 -q").out).size() == 41);  // ids are not a tokenizer's
}

TEST_CASE("train --tokenizer: checkpoint, averages and derived files sample without one") {
  const Folder f;
  const std::string tokenizer = kFolder + "gpt2", train = "train +small --data @ids --token-vocab 704 -q ";
  f.succeeds("tokenize " + tokenizer + " docs/training.md @ids");
  f.succeeds(train + "--steps 2 --checkpoint @without");
  const std::string line = f.succeeds("sample @without Checkpoint --tokenizer " + tokenizer).out;
  f.refuses("sample @without Checkpoint", 2, "has no tokenizer and no alphabet");
  f.succeeds(train + "--steps 2 --checkpoint @c --tokenizer " + tokenizer + " --ema 0.5 --ema-file @ema");
  f.succeeds("convert @c @converted --to crms_norm --dtype f64");
  f.succeeds(train + "--steps 1 --init @converted --checkpoint @tuned --form layer_norm");
  const std::string json = test::read_text(tokenizer + "/tokenizer.json");
  for (const char* file : {"c", "ema", "converted", "tuned"}) {
    const SafetensorsFile written(f / file);
    CHECK(training::spec_of(written).tokenizer == json);
    CHECK(training::spec_of(written).data.starts_with("sha256:"));
    CHECK_THAT(f.succeeds(text("info @", file)).out, Contains("\ntokenizer   tokenizer.json of 11,931 bytes\n"));
    CHECK_THAT(f.succeeds(text("sample @", file, " Checkpoint")).out, StartsWith("Checkpoint"));
  }
  CHECK(f.succeeds("sample @c Checkpoint").out == line);
  // On the command line another one wins.
  const std::string other = "sample @c Checkpoint --tokenizer " + kFolder;
  CHECK(f.succeeds(other + "gpt2").out == line);
  CHECK(f.succeeds(other + "llama3").out != line);
  const auto result = [&f](const std::string& evaluate) {  // without the line that says how the data were read
    const std::string out = f.succeeds(evaluate).out;
    return out.substr(out.find('\n') + 1);
  };
  const std::string of_ids = result("evaluate @c --data @ids");
  const std::string of_text = " --data docs/training.md --test-share 0.1";
  CHECK(result("evaluate @c" + of_text) == of_ids);
  CHECK(result("evaluate @without --tokenizer " + tokenizer + of_text) == of_ids);
  CHECK(f.succeeds("evaluate @converted" + of_text).code == 0);
  f.refuses(
      "evaluate @without" + of_text, 3,
      "is a text, and ids of 704 tokens are expected: isonorm tokenize TOKENIZER docs/training.md IDS makes them");
  f.refuses("evaluate @c --data @ids --text --ids u16", 2, "--ids and --text");
  f.refuses("evaluate @c --text", 2, "needs a text file: --data FILE");
  // A resumed training keeps it, and takes it where there was none.
  const std::string more = "train -q --data @ids --threads 1 --steps 3 --extend --checkpoint ";
  f.succeeds(more + "@c");
  f.succeeds(more + "@without --tokenizer " + tokenizer);
  for (const char* file : {"c", "without"}) CHECK(load_checkpoint(f / file).values.at("tokenizer") == json);
  f.refuses("train -q --data @ids --checkpoint @c --tokenizer " + kFolder + "llama3", 3, "c has another tokenizer");
  f.succeeds("train -q --config @without.toml --checkpoint @again");
  CHECK(load_checkpoint(f / "again").values.at("tokenizer") == json);

  f.refuses("train --model vit -q --tokenizer " + tokenizer, 2, "--tokenizer requires --model gpt with --data");
  f.refuses("train +small --data @ids --token-vocab 700 -q --tokenizer " + tokenizer, 3,
            "it has ids up to 700, --token-vocab is 700");
  f.refuses(train + "--tokenizer " + kFolder + "gpt2_pair", 3, "two files; expected tokenizer.json");
  f.refuses(train + "--tokenizer @none", 4, "none: cannot open");
  f.refuses(train + "--tokenizer @text.txt", 3, "text.txt: json: ");
  f.refuses(train + "--tokenizer @ids --json @ids", 2, "ids");
  std::filesystem::resize_file(f / "text.txt", training::kMostTokenizer + 1);
  f.refuses(train + "--tokenizer @text.txt", 3, "has 33554433 bytes, over the limit of 33554432");

  Checkpoint forged = load_checkpoint(f / "c");
  forged.values["tokenizer"] = "{}";
  save_checkpoint(f / "forged", forged);
  f.refuses("sample @forged Checkpoint", 3, "forged: its tokenizer: it has no model");
  f.refuses("evaluate @forged --text --data docs/training.md", 3, "the model's tokenizer: it has no model");
}

TEST_CASE("import copies a folder's tokenizer if it can be read") {
  const Folder f;
  std::filesystem::copy("tests/fixtures/families/gpt2", f / "in");
  f.succeeds("import @in @none");
  CHECK(training::spec_entries(SafetensorsFile(f / "none")).empty());
  std::filesystem::copy(kFolder + "gpt2/tokenizer.json", f / "in/tokenizer.json");
  f.succeeds("import @in @out");
  CHECK(training::spec_of(SafetensorsFile(f / "out")).tokenizer == test::read_text(kFolder + "gpt2/tokenizer.json"));
  write_text(f / "in/tokenizer.json", "{}");
  CHECK_THAT(f.succeeds("import @in @bare").err,
             StartsWith("isonorm import: without the tokenizer: ") && EndsWith("tokenizer.json: it has no model\n"));
  CHECK(read(f / "bare") == read(f / "none"));
}

TEST_CASE("sample: stop words, several texts, ids, a prompt from standard input, speed") {
  const Folder f;
  f.succeeds("train +small --steps 2 -q --checkpoint @model");
  const std::string sample = "sample @model abc --length 40 ";
  const auto got = f.succeeds(sample);
  const std::string whole = got.out;
  CHECK_THAT(got.err, Contains("40 tokens, ") && Contains(" tokens/s"));
  CHECK(f.succeeds(sample + "-q").err.empty());
  const size_t at = whole.find_first_of("abcxyz", 3);
  REQUIRE(at != whole.npos);
  CHECK(f.succeeds(sample + "--stop qq --stop " + whole[at]).out == whole.substr(0, at) + "\n");
  CHECK(f.succeeds(sample + "--stop qqq").out == whole);
  // If one stop word has begun and another one ends the text, no character before the end is lost.
  bool shown = false;
  for (int seed = 1; !shown && seed < 50; ++seed) {
    const std::string seeded = text(sample, "--seed ", seed, " -q "), line = f.succeeds(seeded).out;
    if (line[3] == ' ' || line[4] == ' ' || line[3] == line[4]) continue;
    CHECK(f.succeeds(seeded + "--stop " + line.substr(3, 2) + "q --stop " + line[4]).out == line.substr(0, 4) + "\n");
    shown = true;
  }
  CHECK(shown);
  const std::string three = f.succeeds(sample + "--count 3").out;
  CHECK(three.size() == 3 * (3 + 40 + 1) + 2);  // blank lines between them
  const std::string one = f.succeeds("sample @model 0 --ids --length 5 --temperature 0").out;
  CHECK(one.find_first_not_of("0123456789 \n") == one.npos);
  CHECK_THAT(one, StartsWith("0 "));
  write_text(f / "prompt", "abc");
  CHECK(f.succeeds("sample @model --length 40", {.input = f / "prompt"}).out == whole);
  const ChildResult folder = f.run("sample @model", {.input = f / "."});
  CHECK((folder.code == 4 && folder.err == "isonorm sample: standard input cannot be read: Is a directory\n"));
  f.refuses("sample @model abq", 3, "byte 113 at position 2 is none of the");
  f.refuses("sample @model 0,99 --ids", 2, "'99' is not an id from 0 to 6");
  f.refuses(sample + "--top-p 0", 2, "--top-p: \"0\" is not a number above 0, at most 1");
  f.refuses(sample + "--min-p 2", 2, "--min-p: \"2\" is not a number from 0 to 1");
  f.refuses(sample + "--repetition-penalty 0", 2, "--repetition-penalty: \"0\" is not a number above 0");
  f.refuses(sample + "--repetition-penalty inf", 2, "--repetition-penalty: \"inf\" is not a number above 0");
  f.refuses(sample + "--temperature inf", 2, "--temperature: \"inf\" is not a number from 0 on");
  f.refuses(sample + "--count 0", 2, "--count: \"0\" is not a whole number from 1 to 9223372036854775807");
}

TEST_CASE("train: weights of bytes go on with a text of the same ones, and refuse another") {
  const Folder f;
  f.succeeds("train +small --steps 2 -q --checkpoint @model");
  const std::string all = read(f / "text.txt");
  std::string fewer;
  for (char c : all)
    if (c != 'a') fewer += c;
  write_text(f / "fewer.txt", fewer);
  write_text(f / "other.txt", all + "q");
  f.succeeds("train +small --data @fewer.txt --init @model --steps 2 -q --checkpoint @tuned --ema 0.5 --ema-file @ema");
  for (const char* model : {"@tuned", "@ema"}) f.succeeds(text("sample ", model, " abc --length 5"));
  f.succeeds("convert @tuned @plain --to layer_norm");
  f.succeeds("sample @plain abc --length 5");
  f.refuses("train +small --data @other.txt --init @model --steps 2 -q", 3,
            "is none of the 7 bytes that the weights were trained on");

  // With --extend-alphabet the other byte gets new rows. The old rows keep their places.
  const std::string more = "train +small --data @other.txt --init @model --extend-alphabet -q ";
  f.succeeds(more + "--steps 1 --lr 1e-30 --warmup 0 --checkpoint @more");
  const Checkpoint before = load_checkpoint(f / "model"), after = load_checkpoint(f / "more");
  CHECK(after.values.at("characters") == before.values.at("characters") + "71");
  int grown = 0;
  for (const auto& [name, tensor] : before.weights) {
    INFO(name);
    const std::vector<double> old = tensor.to(DType::f64).to_vector<double>(),
                              now = after.weights.at(name).to(DType::f64).to_vector<double>();
    REQUIRE(now.size() >= old.size());
    CHECK(std::equal(old.begin(), old.end(), now.begin()));
    if (now.size() == old.size()) continue;
    ++grown;
    const size_t columns = old.size() / 7;
    REQUIRE(now.size() == 8 * columns);
    for (size_t c = 0; c < columns; ++c) {
      double sum = 0, size = 0;
      for (size_t row = 0; row < 7; ++row) sum += old[row * columns + c], size += std::abs(old[row * columns + c]);
      CHECK(std::abs(now[7 * columns + c] - sum / 7) <= 8 * 6e-8 * size / 7);  // eight roundings of f32
    }
  }
  CHECK(grown == 2);  // embedding and head
  f.succeeds(more + "--steps 20 --checkpoint @more20");
  f.succeeds("train --data @other.txt -q --steps 21 --extend --checkpoint @more20");
  f.succeeds("sample @more20 q --length 5");
  f.succeeds("train -q --config @more.toml --checkpoint @again");
  CHECK(read(f / "again") == read(f / "more"));
  f.refuses("train +small --data @other.txt --extend-alphabet -q", 2, "--extend-alphabet needs --init");
  f.refuses("train --init @model --extend-alphabet -q", 2, "--extend-alphabet needs --data");
}

TEST_CASE("train --extend-alphabet: bytes of pairs, too, become new tokens after the model's own") {
  const Folder f;
  const auto write = [&](const std::string& folder, const std::string& source, const std::string& target) {
    std::filesystem::create_directories(f / folder);
    write_text(f / folder + "/source.txt", source), write_text(f / folder + "/target.txt", target);
  };
  std::string source, target;
  for (int i = 0; i < 20; ++i) source += text("b", "cde"[i % 3], "\n"), target += text("x", "yz"[i % 2], "\n");
  write("pairs", source, target);
  write("more", source + "ab\n", target + "q\n");
  f.succeeds("train +small --model translator --data @pairs --steps 2 -q --checkpoint @model");
  const std::string more = "train --model translator --init @model --data @more -q --batch 4 --threads 1 ";
  f.refuses(more + "--steps 1", 3, "source.txt: line 21 has byte 97, which is none of the 7 bytes");
  f.succeeds(more + "--extend-alphabet --steps 1 --lr 1e-30 --warmup 0 --checkpoint @c");
  const Checkpoint before = load_checkpoint(f / "model"), after = load_checkpoint(f / "c");
  CHECK(after.values.at("characters") == before.values.at("characters") + "6171");
  int grown = 0;
  for (const auto& [name, tensor] : before.weights) {
    INFO(name);
    const std::vector<float> old = tensor.to_vector<float>(), now = after.weights.at(name).to_vector<float>();
    REQUIRE(now.size() >= old.size());
    CHECK(std::equal(old.begin(), old.end(), now.begin()));
    grown += now.size() > old.size();
  }
  CHECK(grown >= 2);  // embedding and head
}

TEST_CASE("export: config.json has the tokenizer's end token, or none; never the default of the class") {
  const Folder f;
  const std::string tokenizer = "tests/fixtures/tokenizers/gpt2";  // 701 tokens, of which 700 is <|endoftext|>
  f.succeeds("tokenize " + tokenizer + " docs/training.md @ids");
  const std::string llama =
      " --form uncentred_rms_norm --affine --no-norm-bias --positions rotary_halves --activation swiglu --no-bias";
  const std::string gpt2 = " --form layer_norm --affine --tied", train = "train +small --steps 1 -q";
  for (const std::string& family : {llama, gpt2}) {
    for (const char* made : {"bytes", "tokens", "tokens_again", "like"}) std::filesystem::remove_all(f / made);
    std::filesystem::remove(f / "c"), std::filesystem::remove(f / "t");
    f.succeeds(train + family + " --checkpoint @c");
    f.succeeds(train + family + " --data @ids --token-vocab 701 --checkpoint @t --tokenizer " + tokenizer);
    f.succeeds("export @c @bytes");
    f.succeeds("export @t @tokens");
    const json bytes = f.json("bytes/config.json"), tokens = f.json("tokens/config.json");
    CHECK((bytes.contains("eos_token_id") && bytes["eos_token_id"].is_null()));
    CHECK(tokens["eos_token_id"] == 700);
    for (const json& config : {bytes, tokens})
      CHECK((config.contains("bos_token_id") && config["bos_token_id"].is_null()));
    f.succeeds("import @tokens @again");
    f.succeeds("export @again @tokens_again");
    CHECK(read(f / "tokens_again/config.json") == read(f / "tokens/config.json"));
    json like = tokens;
    like["eos_token_id"] = 5;
    write_text(f / "tokens/config.json", like.dump());
    f.succeeds("export @t @like --like @tokens");
    CHECK(f.json("like/config.json")["eos_token_id"] == 5);
  }
}
