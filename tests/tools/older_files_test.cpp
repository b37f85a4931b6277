// Files of older versions, which lack entries that newer ones have: trainings go on as they were, and models are
// exported.
#include "tests/tools/small_run.h"

namespace {

// Takes entries out of a checkpoint that no version had before.
void make_older(const std::string& path) {
  Checkpoint c = load_checkpoint(path);
  for (const char* name : {"ids", "text", "test_share", "row_length"}) c.values.erase(name);
  save_checkpoint(path, c);
}

void check_same_weights(const std::string& a, const std::string& b) {
  const TensorMap first = load_checkpoint(a).weights, second = load_checkpoint(b).weights;
  REQUIRE(first.size() == second.size());
  for (const auto& [name, tensor] : first) CHECK(same_bytes(tensor, second.at(name)));
}

std::string some_ids(int width) {
  std::string bytes;
  for (int i = 0; i < 600; ++i)
    bytes += static_cast<char>(i * i % 50) + std::string(static_cast<size_t>(width - 1), '\0');
  return bytes;
}

}  // namespace

TEST_CASE("older files: a training on bytes of any file resumes, with --text or without") {
  const Folder f;
  std::string table = "id,text\n", bytes;
  for (int i = 0; i < 300; ++i) table += text(i, ",word ", i % 7, "\n"), bytes += static_cast<char>(i % 20);
  write_text(f / "table.csv", table), write_text(f / "bytes", bytes);
  for (const std::string file : {"table.csv", "bytes", "text.txt"}) {
    INFO(file);
    const std::string train = "train +small --data @" + file + " -q --lr 0.01 --checkpoint ";
    f.succeeds(train + "@old --text --steps 2 --log @log");
    make_older(f / "old");
    std::filesystem::copy_file(f / "old", f / "same");
    f.succeeds("train --data @" + file + " -q --threads 1 --checkpoint @old --steps 4 --extend --log @log");
    f.succeeds("train --data @" + file + " -q --threads 1 --checkpoint @same --steps 4 --extend --text");
    check_same_weights(f / "old", f / "same");
    f.refuses("train --data @" + file + " -q --checkpoint @old --ids u16", 2, "--ids and --text");
    for (const char* made : {"old", "old.previous", "same", "same.previous", "log"}) std::filesystem::remove(f / made);
  }
}

TEST_CASE("older files: a training on ids keeps their width, which followed from their number") {
  const Folder f;
  write_text(f / "ids", some_ids(4));
  const std::string data = "--data @ids --token-vocab 50 -q --checkpoint ";
  f.succeeds("train +small --steps 2 --ids u16 " + data + "@old");
  f.succeeds("train +small --steps 2 --ids u16 " + data + "@new");
  make_older(f / "old");
  for (const char* file : {"@old", "@new"}) f.succeeds("train --threads 1 --steps 4 --extend " + data + file);
  check_same_weights(f / "old", f / "new");
  CHECK(load_checkpoint(f / "old").values.at("ids") == "u16");
  f.refuses("train --ids u32 " + data + "@old", 3, "old: was trained with --ids u16, not u32");
  write_text(f / "wide", some_ids(4));
  const std::string wide = "--data @wide --token-vocab 65537 -q --checkpoint ";
  f.succeeds("train +small --steps 1 " + wide + "@wide.ckpt");
  make_older(f / "wide.ckpt");
  f.succeeds("train --threads 1 --steps 2 --extend " + wide + "@wide.ckpt");
  CHECK(load_checkpoint(f / "wide.ckpt").values.at("ids") == "u32");
}

TEST_CASE("older files: a head's bias of zeros, which import once gave to heads without one, is not exported") {
  const Folder f;
  for (const char* family : {"gpt2_untied", "gpt_neox"}) {
    INFO(family);
    f.succeeds(text("import tests/fixtures/ports/", family, " @new"));
    Metadata metadata;
    const TensorMap tensors = load_safetensors(f / "new", &metadata);
    REQUIRE(metadata.at("model.head_bias") == "false");
    metadata.erase("model.head_bias");
    const auto save = [&](const std::string& name, double bias) {
      TensorMap all = tensors;
      all.add("head.bias", full({tensors.at("head.weight").size(0)}, bias));
      save_safetensors(f / name, all, metadata);
    };
    save("old", 0), save("other", 0.5);
    const std::string name = family;
    f.succeeds("export @new @new." + name), f.succeeds("export @old @old." + name);
    for (const char* file : {"/model.safetensors", "/config.json"})
      CHECK(read(f / ("new." + name + file)) == read(f / ("old." + name + file)));
    f.refuses("export @other @other." + name, 3, "head_bias is true, not false");
    f.succeeds("export @new @new.gguf"), f.succeeds("export @old @old.gguf");
    CHECK(read(f / "new.gguf") == read(f / "old.gguf"));
  }
}

TEST_CASE("older files: the order of dropout and map, once an option, is read if it is the order of today") {
  const Folder f;
  f.succeeds("train +small --steps 2 -q --checkpoint @new");
  std::filesystem::copy_file(f / "new", f / "old");
  const auto say = [&](const char* order) {
    Checkpoint c = load_checkpoint(f / "old");
    c.values["model.recentring"] = order;
    save_checkpoint(f / "old", c);
  };
  say("last");
  f.succeeds("verify @old @new");
  f.succeeds("train --data @text.txt --steps 4 --extend -q --threads 1 --checkpoint @old");
  f.succeeds("train --data @text.txt --steps 4 --extend -q --threads 1 --checkpoint @new");
  check_same_weights(f / "old", f / "new");
  say("first");
  f.refuses("verify @old @new", 3, "entry 'model.recentring' is not an option of a ");
  f.refuses("train --data @text.txt --steps 6 --extend -q --checkpoint @old", 3, "model.recentring");
}
