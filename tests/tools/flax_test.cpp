// Folders of Flax's weights: what is read is what PyTorch has, and computes what Flax does
// (tests/fixtures/flax_folders.py).
#include "exchange/hub/flax.h"

#include <filesystem>

#include "exchange/hub/folder.h"
#include "io/flax_file.h"
#include "tests/tools/logits.h"
#include "tests/tools/small_run.h"

namespace fs = std::filesystem;

namespace {

const std::string kFlax = "tests/fixtures/flax/", kFamilies = "tests/fixtures/families/";

std::string logits_of(const std::string& name) { return kFlax + name + ".safetensors"; }

// A copy of the folder `name` with the tensors of its Flax file as safetensors, under Flax's names.
std::string as_safetensors(const Folder& f, const std::string& name, const std::string& transposed = {}) {
  const std::string copy = f / "copy";
  fs::remove_all(copy), fs::create_directory(copy);
  fs::copy(kFlax + name + "/config.json", copy);
  const io::FlaxFile file(kFlax + name + "/flax_model.msgpack");
  const auto read = [&](const std::string& tensor) {
    const Tensor x = file.read(*std::ranges::find(file.entries(), tensor, &io::TensorEntry::name));
    return tensor == transposed ? detached::contiguous(detached::transpose(x, 0, 1)) : x;
  };
  save_safetensors(copy + "/model.safetensors", file.entries(), {{"format", "flax"}}, read);
  return copy;
}

}  // namespace

TEST_CASE("flax: an imported model computes what Flax does") {
  const Folder f;
  // As port_test.cpp. Flax's LLaMA takes means of squares and angles in f32.
  constexpr double kRoundings = 100, kF64 = 2.3e-16, kF32 = 6e-8;
  for (const auto& [name, eps] : {std::pair{"gpt2", kF64}, {"opt", kF64}, {"vit", kF64}, {"llama", kF32}}) {
    INFO(name);
    f.succeeds(text("import ", kFlax, name, " @", name));
    CHECK(off(logits_of(name), f / name) < kRoundings * eps);
  }
}

TEST_CASE("flax: whole, in shards or in chunks, a folder has the tensors of PyTorch's and converts as that does") {
  const Folder f;
  for (const std::string name : {"gpt2", "opt", "vit", "gptj", "wav2vec2"}) {
    INFO(name);
    const std::string torch = kFamilies + name, rows = torch + ".rows";
    const hub::Folder ours = hub::open_folder(kFlax + name), theirs = hub::open_folder(torch);
    CHECK(ours.names() == theirs.names());
    for (const std::string& tensor : theirs.names()) {
      INFO(tensor);
      CHECK(same_bytes(ours.state.read(tensor), theirs.state.read(tensor)));
    }
    const std::string reference = fs::exists(rows) ? " --reference " + rows : "";
    CHECK_THAT(f.succeeds("convert " + kFlax + name + " @out --to rms_norm -q" + reference).out, Contains("verified."));
    f.succeeds("convert " + torch + " @torch --to rms_norm -q");
    CHECK(read(f / "out/model.safetensors") == read(f / "torch/model.safetensors"));
    for (const fs::directory_entry& e : fs::directory_iterator(f / "out")) CHECK(e.path().extension() != ".msgpack");
    fs::remove_all(f / "out"), fs::remove_all(f / "torch");
  }
}

TEST_CASE("flax: safetensors that say they are of Flax are read so; a square kernel that is not turned is seen") {
  const Folder f;
  for (const std::string name : {"gpt2", "vit", "llama"}) {
    INFO(name);
    f.succeeds("import " + kFlax + name + " @" + name);
    f.succeeds("import " + as_safetensors(f, name) + " @same");
    CHECK(read(f / "same") == read(f / name));
  }
  f.succeeds("import " + as_safetensors(f, "gpt2", "transformer.h.1.attn.c_proj.kernel") + " @turned");
  CHECK(off(logits_of("gpt2"), f / "turned") > 1e-3);
}

TEST_CASE("flax: config.json may be of an older transformers") {
  const Folder f;
  const std::string copy = changed(f, kFlax + "gpt2", "torch_dtype", "float32");
  nlohmann::json config = nlohmann::json::parse(read(copy + "/config.json"));
  for (const char* key : {"dtype", "transformers_version", "scale_attn_by_inverse_layer_idx", "scale_attn_weights"})
    config.erase(key);
  write_text(copy + "/config.json", config.dump());
  f.succeeds("import " + copy + " @old"), f.succeeds("import " + kFlax + "gpt2 @new");
  CHECK(read(f / "old") == read(f / "new"));
  f.succeeds("convert " + copy + " @out --to rms_norm --dtype bf16 -q");
  config = nlohmann::json::parse(read(f / "out/config.json"));
  CHECK(config["torch_dtype"] == "bfloat16");
}

TEST_CASE("flax: names and axes") {
  const auto shard = [](const std::vector<io::TensorEntry>& entries) {
    return hub::Shard{entries, [](const io::TensorEntry& e) { return zeros(e.shape, {e.dtype}); }};
  };
  struct Case {
    io::TensorEntry flax;
    std::string name;
    Dims shape;
  };
  const std::vector<Case> cases = {
      {{.name = "a.kernel", .shape = {2, 3}}, "a.weight", {3, 2}},
      {{.name = "a.kernel", .shape = {2, 3, 4}}, "a.weight", {4, 3, 2}},
      {{.name = "a.kernel", .shape = {2, 3, 4, 5}}, "a.weight", {5, 4, 2, 3}},
      {{.name = "a.kernel", .dtype = DType::u8, .shape = {3, 4, 2}, .foreign = "F16"}, "a.weight", {4, 3, 2}},
      {{.name = "a.kernel", .dtype = DType::u8, .shape = {3, 4}, .foreign = "I8"}, "a.weight", {4, 3}},
      {{.name = "a.scale", .shape = {2}}, "a.weight", {2}},
      {{.name = "a.embedding", .shape = {2, 3}}, "a.weight", {2, 3}},
      {{.name = "a.weight_v", .shape = {2, 3}}, "a.parametrizations.weight.original1", {2, 3}},
      {{.name = "a.kernels", .shape = {2, 3}}, "a.kernels", {2, 3}},
      {{.name = "scale", .shape = {2}}, "scale", {2}}};
  for (const Case& c : cases) {
    INFO(c.flax.name << ' ' << text(c.flax.shape));
    const hub::Shard read = hub::from_flax(shard({c.flax}));
    CHECK(read.entries[0].name == c.name);
    CHECK(read.entries[0].shape == c.shape);
    CHECK(read.read(read.entries[0]).shape() == c.shape);
  }
  CHECK_THROWS_WITH(hub::from_flax(shard({{.name = "batch_stats.a.mean", .shape = {2}}})), Contains("batch norm"));
  CHECK_THROWS_WITH(hub::from_flax(shard({{.name = "a.kernel", .shape = {1, 1, 1, 1, 1}}})),
                    Contains("'a.kernel' has 5 dimensions"));
  CHECK_THROWS_WITH(hub::from_flax(shard({{.name = "a.kernel", .shape = {}}})),
                    Contains("'a.kernel' has 0 dimensions"));
  CHECK_THROWS_WITH(hub::from_flax(shard({{.name = "a.kernel", .shape = {1}}, {.name = "a.scale", .shape = {1}}})),
                    Contains("'a.kernel' and 'a.scale' of Flax are both 'a.weight'"));
}

TEST_CASE("flax: a file that is cut, or whose index lies, is refused in a line that names it") {
  const Folder f;
  fs::copy(kFlax + "opt", f / "bad");
  const std::string index = f / "bad/flax_model.msgpack.index.json", second = "flax_model-00002-of-00002.msgpack",
                    whole = read(f / "bad/" + second);
  write_text(f / "bad/" + second, whole.substr(0, whole.size() - 1));
  for (const char* verb : {"import @bad @out", "convert @bad @out --to rms_norm"})
    f.refuses(verb, 3, second + ".'model.decoder.layers.1.self_attn_layer_norm.scale': flax: byte ");
  write_text(f / "bad/" + second, whole);
  nlohmann::json said = nlohmann::json::parse(read(index));
  said["weight_map"].erase("model/decoder/final_layer_norm/scale");
  write_text(index, said.dump());
  f.refuses("import @bad @out", 3, "the index does not say that 'model.decoder.final_layer_norm.weight'");
  fs::remove_all(f / "bad"), fs::create_directory(f / "bad");
  fs::copy(kFlax + "opt/config.json", f / "bad");
  f.refuses("import @bad @out", 3, "flax_model.msgpack, flax_model.msgpack.index.json");
}
