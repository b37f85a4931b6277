// Every input of every verb is kept from every output, whatever either is called.
#include <unistd.h>

#include "io/name_lock.h"
#include "tests/tools/small_run.h"

using namespace isonorm;
namespace fs = std::filesystem;

namespace {

constexpr const char* kContent = "what somebody worked for\n";

struct Command {
  const char *line, *inputs, *outputs;  // files that it reads; options, or OUT, which is its third word
};

constexpr Command kCommands[] = {
    {"train --model gpt --data @a --init @b", "a b", "--json --report --log --checkpoint"},
    {"train --model translator --data @pairs", "pairs/source.txt pairs/target.txt",
     "--json --report --log --checkpoint"},
    {"train --model vit --data @images", "images/train-images-idx3-ubyte.gz images/t10k-labels-idx1-ubyte",
     "--json --report --log --checkpoint"},
    {"train --model vit --data @images", "images/test_batch.bin", "--json --checkpoint"},
    {"prove --model gpt --data @a", "a", "--json --report --log"},
    {"prove --model translator --data @pairs", "pairs/target.txt", "--json --report --log"},
    {"table --model gpt --data @a", "a", "--json --report"},
    {"experiment perplexity --data @a", "a", "--json --report"},
    {"convert @a --to rms_norm --spec @b --from layer_norm --reference @c", "a b c", "OUT"},
    {"convert @a --to rms_norm --data @pairs", "a pairs/source.txt pairs/target.txt", "OUT"},
    {"compare @a @b --map @c", "a b c", "--json"},
    {"audit --checkpoint @a", "a", "--json --report"}};

// Names that are the file's.
Words spellings(const Folder& f, const std::string& input) {
  const fs::path path = f.path / input, folder = path.parent_path();
  fs::create_symlink(path, f.path / "link");
  fs::create_symlink("link", f.path / "link to link");
  fs::create_hard_link(path, f.path / "hard");
  return {path, folder / "." / path.filename(), folder / ".." / folder.filename() / path.filename(), f / "link to link",
          f / "hard"};
}

}  // namespace

TEST_CASE("no verb writes over what it reads") {
  for (const Command& command : kCommands)
    for (const std::string& input : Folder().words(command.inputs)) {
      const Folder f;
      for (const char* folder : {"pairs", "images"}) fs::create_directory(f.path / folder);
      for (const std::string& file : f.words(command.inputs)) write_text(f / file, kContent);
      for (const std::string& name : spellings(f, input))
        for (const std::string& output : f.words(command.outputs)) {
          Words words = f.words(command.line);
          words.insert(output == "OUT" ? words.begin() + 2 : words.end(), name);
          if (output != "OUT") words.insert(words.end() - 1, output);
          INFO(command.line << " " << output << " " << name);
          check_refusal(run_child(words), 2, words[0], "which would be lost");
          CHECK(read(f / input) == kContent);
        }
    }
}

TEST_CASE("names that an output takes on its way are kept from inputs, too") {
  const Folder f;
  const auto refused = [&](const std::string& input, const std::string& more) {
    write_text(f / input, kContent);
    f.refuses("train --model gpt --data @" + input + " --steps 1 " + more, 2, "which would be lost");
    CHECK(read(f / input) == kContent);
    fs::remove(f / input);
  };
  refused("t.tmp.0123456789abcdef", "--json @t");
  refused("c.previous", "--checkpoint @c");
  refused("c.lock", "--checkpoint @c");
  f.refuses("experiment perplexity --data @perplexity-loss.svg --svg @", 2, "which would be lost");
  f.gives(2, "verify @a @b", {.environment = {"ISONORM_PROFILE=" + f / "b"}});
  // A result in the folder of data that is none of them is written, and written again.
  fs::create_directory(f.path / "pairs");
  for (const char* side : {"source.txt", "target.txt"}) {
    std::ofstream out(f.path / "pairs" / side);
    for (int i = 0; i < 40; ++i) out << "abcab"[i % 5] << "cb\n";
  }
  for (int i = 0; i < 2; ++i)
    f.succeeds("train +small --model translator --data @pairs --json @pairs/result.json --steps 1 --batch 2");
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
