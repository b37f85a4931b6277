// A file of a language model is a text or token ids: all verbs decide alike, and say it or refuse. Limits of texts.
#include <cstdlib>

#include "tests/support/gzip.h"
#include "tests/tools/small_run.h"

namespace fs = std::filesystem;

namespace {

const std::string kTok = "tests/fixtures/tokenizers/gpt2", kText = "docs/training.md";

// A file of ids as the other width.
std::string widened(const std::string& u16) {
  std::string u32;
  for (size_t i = 0; i < u16.size(); i += 2) u32 += u16.substr(i, 2) + std::string(2, '\0');
  return u32;
}

}  // namespace

TEST_CASE("a text where token ids are expected is refused with the command that makes them, by every verb") {
  const Folder f;
  f.succeeds("tokenize " + kTok + " " + kText + " @ids");
  f.succeeds("train +small --data @ids --token-vocab 704 --steps 1 -q --checkpoint @model");
  const std::string says = kText + ": is a text, and ids of 704 tokens are expected: isonorm tokenize TOKENIZER " +
                           kText + " IDS makes them";
  for (const std::string verb : {"train +small -q", "prove +small -q", "lr-find +small -q"})
    f.refuses(verb + " --token-vocab 704 --data " + kText, 3, says);
  f.refuses("train -q --init @model --data " + kText, 3, says);  // the model says how many tokens there are
  f.refuses("evaluate @model --data " + kText, 3, says);
  f.refuses("evaluate @model --test-data " + kText, 3, says);
  f.refuses("verify @model @model --data " + kText, 3, says);
  f.refuses("tokenize --decode " + kTok + " " + kText + " @out", 3, "is a text, and ids of 701 tokens are expected");
  // The option wins: pairs of letters are ids.
  f.succeeds("train +small --token-vocab 65536 --ids u16 --steps 1 -q --data @text.txt");
  f.refuses("evaluate @model --ids u16 --data @text.txt", 3, ", read as u16, is ");
  f.refuses("train +small -q --ids u16 --text", 2, "--ids and --text: the data are token ids, or a text");
  f.refuses("train --model vit -q --ids u16", 2, "--ids requires --model gpt with --data");
}

TEST_CASE("a file with NUL bytes is no text, for every verb; --text reads it all the same") {
  const Folder f;
  f.succeeds("tokenize " + kTok + " " + kText + " @ids");
  f.succeeds("train +small --steps 1 -q --checkpoint @model");
  const std::string says = f / "ids" + ": is not a text: it has a NUL byte at position 1; ";
  for (const std::string verb : {"train +small -q", "prove +small -q", "lr-find +small -q", "table --model gpt",
                                 "evaluate @model", "sample @model abc", "train -q --init @model"})
    f.refuses(verb + " --data @ids", 3, says);
  f.refuses("train +small -q --test-data @ids", 3, says);
  f.refuses("tokenize " + kTok + " @ids @out", 3, says + "isonorm tokenize --decode reads token ids");
  f.succeeds("train +small --text --steps 1 -q --data @ids");
  f.succeeds("tokenize --text " + kTok + " @ids @out");
  f.succeeds("tokenize --decode " + kTok + " @out @back");
  CHECK(read(f / "back") == read(f / "ids"));
}

TEST_CASE("compressed files, UTF-16, lines of JSON and tables are named, with the command that makes a text") {
  const Folder f;
  const std::string words = read(f / "text.txt");
  std::string utf16 = "\xff\xfe", utf16_be;
  for (char c : words) utf16 += {c, '\0'}, utf16_be += {'\0', c};
  const std::vector<uint8_t> packed = gzip({reinterpret_cast<const uint8_t*>(words.data()), words.size()});
  write_text(f / "a.txt.gz", {packed.begin(), packed.end()});
  write_text(f / "b.txt", utf16);
  write_text(f / "it's be.txt", utf16_be);
  write_text(f / "c.jsonl", "{\"text\": \"" + words + "\"}\n");
  write_text(f / "d.csv", "id,text\n1,\"" + words + "\"\n");
  const bool python = std::system("python3 -c '' 2>/dev/null") == 0;
  for (const auto& [file, made, what, needs_python] :
       std::vector<std::tuple<std::string, std::string, std::string, bool>>{
           {"a.txt.gz", "a.txt", "compressed by gzip", false},
           {"b.txt", "b-2.txt", "encoded in UTF-16", false},
           {"it's be.txt", "it's be-2.txt", "encoded in UTF-16BE", false},
           {"c.jsonl", "c.txt", "lines of JSON", true},
           {"d.csv", "d.txt", "a table", true}}) {
    Words line = f.words("train +small --steps 1 -q --data @x");
    *(std::ranges::find(line, "--data") + 1) = f / file;
    const ChildResult r = run_child(line);
    check_refusal(r, 3, "train", text(f / file, ": is ", what, ", and a text is expected: "));
    if (needs_python && !python) continue;
    const size_t begin = r.err.find("expected: ") + 10;
    const std::string command = r.err.substr(begin, r.err.rfind("; isonorm train --text") - begin);
    INFO(command);
    REQUIRE(std::system(command.c_str()) == 0);
    CHECK(read(f / made) == words + (needs_python ? "\n" : ""));
  }
  f.succeeds("train +small --steps 1 -q --text --data @d.csv");
  f.refuses("train +small -q --token-vocab 50257 --data @b.txt", 3, "is encoded in UTF-16");
  f.refuses("tokenize " + kTok + " @a.txt.gz @out", 3, "is compressed by gzip");
}

TEST_CASE("token ids of 4 bytes are found by their zeros, whatever the vocabulary says") {
  const Folder f;
  f.succeeds("tokenize " + kTok + " " + kText + " @ids");
  write_text(f / "wide", widened(read(f / "ids")));
  const std::string train = "train +small --token-vocab 704 --steps 2 ";
  CHECK_THAT(f.succeeds(train + "--checkpoint @narrow --data @ids").err, Contains(" token ids, u16\n"));
  CHECK_THAT(f.succeeds(train + "--checkpoint @wider --data @wide").err, Contains(" token ids, u32\n"));
  CHECK(load_checkpoint(f / "wider").weights.find("head.weight")->to_vector<float>() ==
        load_checkpoint(f / "narrow").weights.find("head.weight")->to_vector<float>());
  const auto of = [&](const std::string& data) {
    f.succeeds("evaluate @narrow --json @json --test-data " + data);
    return f.json("json")["loss"].get<double>();
  };
  CHECK(of("@wide") == of("@ids"));
  CHECK(of("@wide --ids u16") != of("@ids"));
  f.succeeds("tokenize --decode " + kTok + " @wide @back");
  CHECK(read(f / "back") == test::read_text(kText));
  // A vocabulary that needs u32 does not read u16.
  write_text(f / "even", read(f / "ids").substr(0, 4000));
  f.refuses("train +small -q --data @even --token-vocab 70000", 3, ", read as u32, is ");
}

TEST_CASE("a model that holds a tokenizer takes a text or its ids, and says which") {
  const Folder f;
  f.succeeds("tokenize " + kTok + " " + kText + " @ids");
  const std::string tokens = text(std::filesystem::file_size(f / "ids") / 2);
  // From the start.
  f.succeeds("train +small --steps 2 --token-vocab 701 --checkpoint @of_ids -q --data @ids --tokenizer " + kTok);
  const auto said = f.succeeds("train +small --steps 2 --checkpoint @of_text --tokenizer " + kTok + " --data " + kText);
  CHECK_THAT(said.err, Contains(kText + ": a text, " + tokens + " tokens of the model's tokenizer\n"));
  const Checkpoint a = load_checkpoint(f / "of_ids"), b = load_checkpoint(f / "of_text");
  for (const auto& [name, tensor] : a.weights)
    CHECK(tensor.to_vector<float>() == b.weights.find(name)->to_vector<float>());
  CHECK(b.values.at("token_vocab") == "701");
  // From weights, and resumed: the file says what it needs.
  f.succeeds("train -q --batch 4 --threads 1 --steps 1 --init @of_ids --checkpoint @c1 --data @ids");
  f.succeeds("train -q --batch 4 --threads 1 --steps 1 --init @of_ids --checkpoint @c2 --data " + kText);
  CHECK(load_checkpoint(f / "c1").weights.find("head.weight")->to_vector<float>() ==
        load_checkpoint(f / "c2").weights.find("head.weight")->to_vector<float>());
  f.succeeds("train -q --threads 1 --steps 2 --extend --checkpoint @c2 --data " + kText);
  f.succeeds("lr-find -q --batch 4 --threads 1 --steps 11 --init @of_ids --data " + kText);
  // Tests.
  const std::string evaluated = f.succeeds("evaluate @of_ids --json @json --data " + kText).out;
  CHECK_THAT(evaluated, Contains(kText + ": a text, " + tokens + " tokens of the model's tokenizer; all of it"));
  CHECK(f.json("json")["tokens"] == std::stoll(tokens));
  CHECK(f.json("json")["bytes"] == std::filesystem::file_size(kText));
  const double of_text = f.json("json")["loss"];
  f.succeeds("evaluate @of_ids --json @json --test-data @ids");
  CHECK(f.json("json")["loss"] == of_text);
}

TEST_CASE("a model of tokens without a tokenizer reads its ids, and one of bytes its text, as the file says") {
  const Folder f;
  f.succeeds("tokenize " + kTok + " " + kText + " @ids");
  f.succeeds("train +small --steps 2 --token-vocab 701 --ema 0.5 --ema-file @model -q --data @ids");
  CHECK_THAT(
      f.succeeds("evaluate @model --test-data @ids").out,
      Contains(" token ids, u16; all of it, but the model was trained on the first 90 % of the file\nheld-out loss "));
  f.succeeds("verify @model @model --data @ids");
  f.succeeds("train -q --batch 4 --threads 1 --steps 1 --init @model --data @ids");
  f.succeeds("train +small --steps 2 --ema 0.5 --ema-file @bytes -q");
  CHECK_THAT(f.succeeds("evaluate @bytes --test-data @text.txt").out,
             Contains(": a text of 800 bytes; all of it, but the model was trained on the first 90 % of the file\n"));
}

TEST_CASE("an endless or too large text is refused, with the limit") {
  const Folder f;
  f.succeeds("train +small -q --steps 1 --checkpoint @c");
  fs::create_directory(f.path / "hub");
  fs::create_directory(f.path / "tok");
  // The file of each line that is endless, and then too large.
  const std::pair<const char*, const char*> lines[] = {
      {"train +small --steps 1 --config @config.toml", "config.toml"},
      {"convert @c @out --to rms_norm --spec @spec.json --from layer_norm", "spec.json"},
      {"hooks @spec.json", "spec.json"},
      {"compare @c @c2 --spec @spec.json", "spec.json"},
      {"compare @c @c2 --map @map.json", "map.json"},
      {"spec @hub", "hub/config.json"},
      {"tokenize @tok @text.txt @out", "tok/tokenizer.json"},
      {"tokenize @t.json @text.txt @out", "t.json"}};
  fs::copy_file(f / "c", f / "c2");
  for (const auto& [line, file] : lines) {
    INFO(line);
    fs::create_symlink("/dev/zero", f.path / file);
    CHECK(contains(f.gives(4, line).err, "regular file"));
    fs::remove(f / file);
    write_text(f / file, "");
    fs::resize_file(f / file, std::uintmax_t{1} << 40);  // without a block on the disk
    const ChildResult r = f.gives(3, line);
    CHECK(contains(r.err, "the file has 1099511627776 bytes, over the limit of "));
    fs::remove(f / file);
  }
  CHECK(contains(f.gives(3, "plot /dev/zero").err, "a line has more than 16777216 bytes"));
}
