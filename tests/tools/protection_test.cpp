// Every input of every verb is kept from every output, whatever either is called.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>

#include "io/unfinished.h"
#include "tests/tools/small_run.h"

namespace fs = std::filesystem;

namespace {

constexpr const char* kContent = "what somebody worked for\n";

// A verb with its files. inputs: OPTION:file if the option names the file or its folder; a positional option has its
// own name. OUT in `line` is the positional output, with the suffix that its name needs. words: options whose values
// are not files, or are folders to which files are added.
struct Row {
  const char *line, *inputs, *outputs, *words;
};

constexpr Row kRows[] = {
    {"prove --model gpt --data @text --test-data @text --tokenizer @tok", "--data:text --tokenizer:tok/tokenizer.json",
     "--json --report --log", ""},
    {"prove --model gpt --data @a --test-data @text", "--test-data:text", "--json --report --log", ""},
    {"prove --model translator --data @pairs", "--data:pairs/source.txt --data:pairs/target.txt", "--json --log", ""},
    {"prove --model vit --data @pictures", "--data:pictures/val/a/deep/x.jpeg", "--json --report --log", ""},
    {"train --model gpt --data @a --test-data @text", "--test-data:text", "--json --report --log", ""},
    {"train --model gpt --token-vocab 9 --data @text --init @a --tokenizer @tok --config @x.toml",
     "--data:text --init:a --tokenizer:tok/tokenizer.json --tokenizer:tok/vocab.json --config:x.toml",
     "--json --report --log --checkpoint --best --ema-file", "--tensorboard"},
    {"train --model translator --data @pairs", "--data:pairs/source.txt --data:pairs/target.txt",
     "--json --report --log --checkpoint --best", ""},
    {"train --model vit --data @images",
     "--data:images/train-images-idx3-ubyte.gz --data:images/t10k-labels-idx1-ubyte --data:images/test_batch.bin",
     "--json --checkpoint", ""},
    {"train --model vit --data @pictures", "--data:pictures/train/a/x.png --data:pictures/val/a/deep/x.jpeg",
     "--json --report --log --checkpoint --best --ema-file", ""},
    {"table --model gpt --data @text", "--data:text", "--json --report", ""},
    {"experiment perplexity --data @text", "--data:text", "--json --report", "NAME --svg"},
    {"experiment cnn-norms --data @pictures", "--data:pictures/train/a/x.png", "--json --report", ""},
    {"convert @a OUT --to rms_norm --spec @b --from layer_norm --reference @c", "IN:a --spec:b --reference:c",
     "OUT --json", ""},
    {"convert @a OUT --to rms_norm --data @pairs", "IN:a --data:pairs/source.txt", "OUT --json", ""},
    {"convert @a OUT --to rms_norm --data @pictures", "--data:pictures/train/a/x.png", "OUT --json", ""},
    {"convert @hub/model.safetensors OUT --to rms_norm --from layer_norm --spec @hub",
     "--spec:hub/config.json --spec:hub/part.safetensors --spec:hub/model.safetensors.index.json "
     "--spec:hub/pytorch_model.bin --spec:hub/tokenizer.json",
     "OUT --json", ""},
    {"rotate @a OUT --basis @q.npy --spec @b --from rms_norm", "IN:a --basis:q.npy --spec:b", "OUT --json", ""},
    {"rotate @a OUT --basis haar:1 --data @text", "IN:a --data:text", "OUT --json", ""},
    {"verify @a @b --spec @c --data @text", "A:a B:b --spec:c --data:text", "--json", ""},
    {"verify @hub @b", "A:hub/part.safetensors", "--json", ""},
    {"hooks @b", "SPEC:b", "", ""},
    {"spec @hub", "FOLDER:hub/config.json", "", ""},
    {"compare @a @b --map @c --spec @d --order @e --control @f", "A:a B:b --map:c --spec:d --order:e --control:f",
     "--json", ""},
    {"perturb @a OUT", "IN:a", "OUT --json", ""},
    {"audit --checkpoint @a", "--checkpoint:a", "--json --report", ""},
    {"import @hub OUT", "FOLDER:hub/config.json FOLDER:hub/part.safetensors FOLDER:hub/tokenizer.json", "OUT --json",
     ""},
    {"export @a.onnx OUT.onnx", "IN:a.onnx", "OUT --json", ""},
    {"export @a.gguf OUT.gguf --like @hub", "IN:a.gguf --like:hub/config.json --like:hub/tokenizer.json", "OUT --json",
     ""},
    {"tokenize @tok @text OUT",
     "TOKENIZER:tok/tokenizer.json TOKENIZER:tok/vocab.json TOKENIZER:tok/merges.txt IN:text", "OUT --json", ""},
    {"tokenize @tok/vocab.json @text OUT", "TOKENIZER:tok/merges.txt", "OUT --json", ""},
    {"sample @a x --tokenizer @tok", "MODEL:a --tokenizer:tok/tokenizer.json", "--json", "PROMPT"},
    {"sample @a x --data @text", "--data:text", "--json", ""},
    {"info @a", "FILE:a", "--json", ""},
    {"plot @a @b", "LOG:a LOG:b", "--report --json", "--svg"},
    {"evaluate @a --text --data @text --tokenizer @tok", "MODEL:a --data:text --tokenizer:tok/tokenizer.json", "--json",
     ""},
    {"evaluate @a --test-data @text", "--test-data:text", "--json", ""},
    {"evaluate @a --data @pictures", "--data:pictures/train/a/x.png", "--json", ""},
    {"lr-find --model gpt --data @text --init @a", "--data:text --init:a", "--json --report", ""},
    {"lr-find --model gpt --data @a --test-data @text --tokenizer @tok", "--test-data:text --tokenizer:tok/vocab.json",
     "--json --report", ""},
    {"lr-find --config @x.toml", "--config:x.toml", "--json --report", ""},
    {"lr-find --model vit --data @pictures", "--data:pictures/train/a/x.png", "--json --report", ""},
    {"lr-find --model translator --data @pairs", "--data:pairs/target.txt", "--json --report", ""},
    {"explain rms_norm 1,2", "", "--json", "NORM ROW"},
    {"completion bash", "", "", "SHELL"},
    {"man train", "", "", "VERB"}};

std::string verb_of(const Row& row) { return std::string(row.line).substr(0, std::string_view(row.line).find(' ')); }

// The options of a verb that take a value which may be the name of a file, by its manual page.
std::set<std::string> named_values(const Folder& f, const std::string& verb) {
  std::set<std::string> options;
  std::istringstream page(f.succeeds("man " + verb).out);
  std::string line, before, section;
  for (; std::getline(page, line); before = line) {
    std::erase(line, '\\');
    if (line.starts_with(".SH ")) section = line.substr(4);
    if (before != ".TP" || !line.starts_with(".B ") || section == "EXAMPLES" || section == "HELP") continue;
    const size_t space = line.find_last_of(' ');
    const std::string name = line.substr(line.find_last_of(' ', space - 1) + 1), type = line.substr(space + 1);
    if (section == "ARGUMENTS")
      options.insert(type);
    else if (type == "FILE" || type == "FOLDER" || type == "PATH" || type == "BASIS")
      options.insert(name.substr(0, name.find(' ')));
  }
  return options;
}

// Writes all files that rows name. Their content is `kContent`, except for x.toml, which is empty, and the index.
void make_files(const Folder& f) {
  for (const char* folder : {"pairs", "images", "pictures/train/a", "pictures/val/a/deep", "hub", "tok"})
    fs::create_directories(f.path / folder);
  write_text(f / "pictures/train/a/x.png", "1");
  for (const char* file : {"text",
                           "a",
                           "b",
                           "c",
                           "d",
                           "e",
                           "f",
                           "a.onnx",
                           "a.gguf",
                           "q.npy",
                           "x.toml",
                           "pairs/source.txt",
                           "pairs/target.txt",
                           "images/train-images-idx3-ubyte.gz",
                           "images/t10k-labels-idx1-ubyte",
                           "images/test_batch.bin",
                           "pictures/train/a/x.png",
                           "pictures/val/a/deep/x.jpeg",
                           "hub/config.json",
                           "hub/model.safetensors",
                           "hub/part.safetensors",
                           "hub/pytorch_model.bin",
                           "hub/tokenizer.json",
                           "tok/tokenizer.json",
                           "tok/vocab.json",
                           "tok/merges.txt"})
    write_text(f / file, kContent);
  write_text(f / "x.toml", "");
  write_text(f / "hub/model.safetensors.index.json", R"({"weight_map": {"t": "part.safetensors"}})");
}

// The row's words with `name` as this output.
Words with_output(const Folder& f, const Row& row, const std::string& output, const std::string& name) {
  Words words = f.words(row.line);
  const auto out = std::ranges::find_if(words, [](const std::string& w) { return w.starts_with("OUT"); });
  if (out != words.end()) *out = output == "OUT" ? name : f / "new";
  if (output.starts_with("--")) words.insert(words.end(), {output, name});
  return words;
}

// "OUT.onnx": ".onnx".
std::string ending_of_out(const std::string& line) {
  const size_t out = line.find("OUT");
  return out == line.npos ? "" : line.substr(out + 3, line.find(' ', out) - out - 3);
}

// Names that are the file's.
Words spellings(const Folder& f, const std::string& input) {
  const fs::path path = f.path / input, folder = path.parent_path();
  fs::create_symlink(path, f.path / "link");
  fs::create_symlink("link", f.path / "link to link");
  return {path, folder / "." / path.filename(), folder / ".." / folder.filename() / path.filename(),
          f / "link to link"};
}

}  // namespace

TEST_CASE("every verb, and every option that may name a file, is in the table") {
  const Folder f;
  std::map<std::string, std::set<std::string>> listed;
  for (const Row& row : kRows) {
    std::set<std::string>& of_verb = listed[verb_of(row)];
    for (const std::string& input : f.words(row.inputs)) of_verb.insert(input.substr(0, input.find(':')));
    for (const char* options : {row.outputs, row.words})
      for (const std::string& option : f.words(options)) of_verb.insert(option);
  }
  const std::string main = f.succeeds("man").out;
  std::set<std::string> verbs;
  std::istringstream page(main.substr(main.find(".SH VERBS"), main.find(".SH HELP") - main.find(".SH VERBS")));
  for (std::string line; std::getline(page, line);)
    if (std::erase(line, '\\'); line.starts_with(".B ")) verbs.insert(line.substr(3));
  CHECK(verbs.size() > 20);
  for (const std::string& verb : verbs)
    for (const std::string& option : named_values(f, verb)) {
      INFO(verb << ' ' << option << ": is it an input, an output, or neither?");
      CHECK(listed[verb].contains(option));
    }
}

TEST_CASE("no verb overwrites its inputs") {
  const Folder f;
  make_files(f);
  for (const Row& row : kRows) {
    const std::string verb = verb_of(row);
    for (const std::string& entry : f.words(row.inputs)) {
      const std::string option = entry.substr(0, entry.find(':')), input = entry.substr(entry.find(':') + 1);
      const std::string before = read(f / input), line = row.line;
      const std::string hard = f / ("hard" + ending_of_out(line));
      fs::create_hard_link(f / input, hard);
      for (const std::string& output : f.words(std::string(row.outputs) + " ISONORM_PROFILE")) {
        const bool profile = output == "ISONORM_PROFILE";
        const Words words = with_output(f, row, output, hard);
        INFO(row.line << ' ' << output << ' ' << entry);
        const ChildOptions environment{.environment = {profile ? "ISONORM_PROFILE=" + hard : "UNUSED="}};
        check_refusal(run_child(words, environment), 2, verb,
                      output + ": " + hard + " is the file of " + option + ", which would be lost");
        CHECK(read(f / input) == before);
      }
      fs::remove(hard);
    }
    // Nor one output over another.
    const Words outputs = f.words(row.outputs);
    for (size_t i = 1; i < outputs.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        const std::string file = f / ("new" + ending_of_out(row.line));
        Words words = with_output(f, row, outputs[j], file);  // outputs[0] may be the word OUT
        words.insert(words.end(), {outputs[i], file});
        INFO(row.line << ' ' << outputs[i] << ' ' << outputs[j]);
        check_refusal(run_child(words), 2, verb, "name the same file");
      }
    CHECK_FALSE(fs::exists(f / "new"));
  }
}

TEST_CASE("an input is known under each of its names") {
  const Folder f;
  make_files(f);
  for (const std::string& name : spellings(f, "pairs/source.txt"))
    check_refusal(run_child(f.words("train --model translator --data @pairs --json") + Words{name}), 2, "train",
                  "which would be lost");
  CHECK(read(f / "pairs/source.txt") == kContent);
}

TEST_CASE("names that an output takes on its way are kept from inputs, too") {
  const Folder f;
  const auto refused = [&](const std::string& input, const std::string& line) {
    write_text(f / input, kContent);
    f.refuses(line, 2, "which would be lost");
    CHECK(read(f / input) == kContent);
    fs::remove(f / input);
  };
  refused("t.tmp.0123456789abcdef", "train --model gpt --data @t.tmp.0123456789abcdef --steps 1 --json @t");
  for (const char* input : {"c.previous", "c.lock", "c.toml"})
    refused(input, text("train --model gpt --data @", input, " --steps 1 --checkpoint @c"));
  refused("big.onnx.data", "export @big.onnx.data @big.onnx");
  f.refuses("experiment perplexity --data @perplexity-loss.svg --svg @", 2, "which would be lost");
  // A result in the folder of data that is none of them is written, and written again.
  fs::create_directory(f.path / "pairs");
  for (const char* side : {"source.txt", "target.txt"}) {
    std::ofstream out(f.path / "pairs" / side);
    for (int i = 0; i < 40; ++i) out << "abcab"[i % 5] << "cb\n";
  }
  for (int i = 0; i < 2; ++i)
    f.succeeds("train +small --model translator --data @pairs --json @pairs/result.json --steps 1 --batch 2");
}

TEST_CASE("temporary files of an output never replace other files") {
  const Folder f;
  const std::string small = "train +small -q --save-every 1 --checkpoint @c", train = small + " --steps 2";
  for (const char* beside : {"c.toml", "c.previous", "c.lock"}) {
    write_text(f / beside, kContent);
    f.refuses(train, 4, text(f / beside, ": is in the way"));
    CHECK(read(f / beside) == kContent);
    CHECK_FALSE(fs::exists(f / "c"));
    fs::remove(f / beside);
  }
  // A file too short for the bytes that identify a checkpoint is kept, too.
  write_text(f / "c.previous", "1234567");
  f.refuses(train, 4, text(f / "c.previous", ": is in the way"));
  CHECK(read(f / "c.previous") == "1234567");
  fs::remove(f / "c.previous");
  // A file with the user's own options is kept. A training may replace a file that it wrote itself.
  write_text(f / "c.toml", "lr = 0.125  # mine\n");
  f.succeeds(train + " --config @c.toml");
  CHECK(read(f / "c.toml") == "lr = 0.125  # mine\n");
  fs::remove(f / "c.toml");
  for (const char* steps : {"3", "4"}) f.succeeds(small + " --extend --lr 0.125 --steps " + steps);
  CHECK(contains(read(f / "c.toml"), "steps = 4\n"));
}

TEST_CASE("an output that becomes an input while the verb runs does not replace it") {
  const Folder f;
  REQUIRE(mkfifo((f / "pipe").c_str(), 0600) == 0);
  fs::create_symlink("later", f.path / "link");
  const std::string before = read(f / "text.txt");
  // The training checks its outputs and then waits for a reader of its log. By then its checkpoint is locked.
  const ChildResult r = f.run("train +small --steps 1 -q --checkpoint @c --log @pipe --json @link", {.meanwhile = [&] {
                                while (!fs::exists(f / "c.lock")) usleep(1000);
                                fs::remove(f / "link");
                                fs::create_symlink("text.txt", f.path / "link");
                                std::ifstream reader(f / "pipe");
                                std::string line;
                                while (std::getline(reader, line)) continue;
                              }});
  CHECK(r.code == 4);
  CHECK(contains(r.err, "link: is the file of --data by now, which would be lost"));
  CHECK(read(f / "text.txt") == before);
}

TEST_CASE("a checkpoint has one training at a time; the second says who has it") {
  const Folder f;
  const std::string train = "train +small -q --steps 2 --checkpoint @c";
  {
    const io::NameLock held(f / "c");
    f.refuses(train, 4, "process " + std::to_string(getpid()) + " on ");
    CHECK_FALSE(fs::exists(f / "c"));
  }
  f.succeeds(train);
  CHECK_FALSE(fs::exists(f / "c.lock"));
}
