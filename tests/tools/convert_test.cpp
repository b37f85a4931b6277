// convert and verify run as a person runs them: train, convert, verify, and what they refuse.
#include <cstdlib>

#include "autograd/grad_mode.h"
#include "autograd/ops/index.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/shape.h"
#include "nn/vit.h"
#include "tests/support/zip.h"
#include "tests/equivalence/gpt2_program.h"
#include "tests/tools/small_run.h"

namespace {

// A folder with a small model trained on its text, with learned gains and biases.
struct Trained : Folder {
  Trained() { train("in", "layer_norm", 1); }
  void train(const std::string& name, const std::string& form, int seed) const {
    succeeds(
        text("train +small -q --steps 5 --affine --lr 0.1 --form ", form, " --seed ", seed, " --checkpoint @", name));
  }
  training::ModelFile load(const std::string& name) const { return training::load_model_file(file(name)); }
  void save(const std::string& name, const TensorMap& state, const Metadata& metadata = {}) const {
    save_safetensors(file(name), state, metadata);
  }
};

// The layout of such a model as a description, and `more` entries.
std::string described(const std::string& more = "") {
  return R"({"width": 8, "norms": {"blocks.*.norm1": "1e-5", "blocks.*.norm2": "1e-5", "norm": "1e-5"},
    "writers": {"token.weight": 1, "position.weight": 1, "blocks.*.attn.proj.weight": 0, "blocks.*.attn.proj.bias": 0,
                "blocks.*.mlp.fc2.weight": 0, "blocks.*.mlp.fc2.bias": 0},
    "readers": {"blocks.*.attn.qkv.weight": {"dim": 1, "norm": "blocks.*.norm1"},
                "blocks.*.mlp.fc1.weight": {"dim": 1, "norm": "blocks.*.norm2"},
                "head.weight": {"dim": 1, "norm": "norm"}}
)" + more +
         "}";
}

}  // namespace

TEST_CASE("convert and verify: a trained model in every form, there and back") {
  const Trained t;
  for (const std::string form : {"rms_norm", "crms_norm", "crms_isometric"}) {
    CHECK_THAT(t.succeeds("convert @in @" + form + " --to " + form + " --from layer_norm --data @text.txt").out,
               Contains("blocks.0.attn.qkv.weight") && Contains("gain folded") &&
                   Contains("dropped: folded into its readers") && Contains("in f64, logits of data differ by") &&
                   Contains("as stored, logits of data differ by") && Contains("verified."));
    CHECK_THAT(t.succeeds("verify @in @" + form + " --data @text.txt").out,
               Contains("equivalent: the two are one function."));
    t.succeeds("convert @" + form + " @back --to layer_norm -q");
    t.succeeds("verify @in @back -q");
    CHECK_THAT(t.succeeds("verify -q @back @" + form).out, StartsWith("equivalent: the two are one function. "));
  }
  // The means that rounding left in the writers of a coarse RMSNorm file are no reason to refuse it.
  t.succeeds("convert @in @coarse --to rms_norm --dtype bf16 -q");
  t.succeeds("convert @coarse @fine --to layer_norm --dtype f64 -q");
  t.succeeds("verify @coarse @fine");
  t.succeeds("convert @crms_norm @other --to crms_isometric");
  t.succeeds("verify @crms_norm @other");
}

TEST_CASE("verify: two trainings are two functions, and what models differ in is named") {
  const Trained t;
  t.train("other", "layer_norm", 2);
  CHECK_THAT(t.gives(1, "verify @in @other").out,
             Contains(": different") && Contains("different: the two are not one function: "));
  training::ModelFile eps = t.load("in");
  eps.description.insert_or_assign("model.eps", std::string("1e-03"));
  t.save("eps", eps.state, eps.description);
  CHECK_THAT(t.gives(1, "verify @in @eps").out, Contains("Their options differ: eps 1e-05 and 0.001."));
  nn::Vit vit({.image = 6, .patch = 3, .classes = 4, .transformer = {.width = 8, .depth = 1, .heads = 2}});
  t.save("vit", vit.state_dict(), training::describe(vit));
  CHECK(t.gives(1, "verify @in @vit").out ==
        "different: they are different models: the first is a GPT, the second a ViT.\n");
}

TEST_CASE("convert: raw weights of another form are the Pre-LN model's, and exported unchanged") {
  const Trained t;
  t.train("raw", "crms_norm", 3);
  t.succeeds("convert @raw @out --to rms_norm --from crms_norm");
  t.succeeds("verify @raw @out");
  t.refuses("convert @raw @no --to rms_norm --from crms_isometric", 3, "form is crms_norm");
  CHECK_THAT(t.succeeds("convert @raw @plain --to layer_norm").out,
             Contains("holds raw weights: those of the Pre-LN model"));
  const training::ModelFile before = t.load("raw"), after = t.load("plain");
  CHECK(after.description.at("model.form") == "layer_norm");
  for (const auto& [name, tensor] : before.state)
    CHECK(tensor.to_vector<float>() == after.state.at(name).to_vector<float>());
  CHECK_THAT(t.succeeds("verify @raw @plain").out, Contains("Every tensor is equal to the last bit."));
  t.succeeds("convert @raw @wide --to layer_norm --dtype f64");
  t.succeeds("verify @raw @wide -q");
}

TEST_CASE("audit and compare read what verify reads") {
  const Trained t;
  const std::string audit = "audit -q --batch 2 --checkpoint ";
  t.succeeds(audit + "@in");
  t.succeeds(audit + "@in --width 08 --affine --eps 1e-5 --head-width 0");  // equal values, whatever their words
  t.refuses(audit + "@in --width 16", 2, "--width: 16, in");
  t.refuses(audit + "@in --eps 1e-6", 2, "--eps: 1e-6, in ");
  t.refuses("audit --letters 0", 2, "--letters");
  t.succeeds("convert @in @crms --to crms_norm -q");
  t.refuses(audit + "@crms", 3, "expected the Pre-LN model's: isonorm convert --to layer_norm");
  t.save("plain", t.load("in").state);
  t.succeeds("compare @in @plain");
}

TEST_CASE("convert: usage is 2, what cannot be converted 3, files 4, and OUT does not appear") {
  const Trained t;
  const training::ModelFile in = t.load("in");
  std::vector<uint8_t> bytes = read_bytes(t / "in");
  write_bytes(t / "short", std::span(bytes).first(bytes.size() / 2));
  bytes[bytes.size() - 1] ^= 1;
  write_bytes(t / "flipped", bytes);
  t.save("plain", in.state), t.save("model-00001-of-00002.safetensors", in.state);
  write_text(t / "other_text", "QRSTU QRSTU QRSTU QRSTU");
  const struct {
    const char* words;
    int code;
    const char* says;
  } wrong[] = {
      {"@in @out --to batch_norm", 2, "batch_norm"},
      {"@in @in --to rms_norm", 2, "is the file of IN, which would be lost"},
      {"@in @text.txt --to rms_norm --data @text.txt", 2, "--data"},
      {"@in @text.txt --to rms_norm --spec @text.txt --from layer_norm", 2, "--spec"},
      {"@in @out --to rms_norm --dtype f8", 2, "f8"},
      {"@in @out --to rms_norm --spec @none", 2, "--from"},
      {"@in @out --to crms_norm --reference @in", 2, "--reference needs --spec"},
      {"@in @out --to rms_norm --from rms_norm", 3, "its form is layer_norm"},
      {"@in @out --to layer_norm", 3, "in: convert: the checkpoint has the form layer_norm already"},
      {"@in @out --to rms_norm --eps 1e-6", 3, "another eps gives another function"},
      {"@in @out --to rms_norm --data @other_text", 3, "a text of 6 different bytes, and the model has 7 tokens"},
      {"@short @out --to rms_norm", 3, "short"},
      {"@flipped @out --to rms_norm", 3, "checksum"},
      {"@plain @out --to rms_norm", 3, "--spec"},
      {"@model-00001-of-00002.safetensors @out --to rms_norm", 3, "shard 00001 of 00002"},
      {"@none @out --to rms_norm", 4, "none"},
      {"@in @no/such/out --to rms_norm", 4, "no/such/out"},
      {"@in @out --to rms_norm --data @none", 4, "none"}};
  for (const auto& [words, code, says] : wrong) t.refuses(std::string("convert ") + words, code, says);
  CHECK_FALSE(std::filesystem::exists(t / "out"));
}

TEST_CASE("convert: a file that other tools wrote, by its description") {
  const Trained t;
  const TensorMap state = t.load("in").state;
  t.save("plain", state, {{"format", "pt"}});
  write_text(t / "spec.json", described());
  const std::string spec = " --spec @spec.json", layer_norm = spec + " --from layer_norm";
  t.succeeds("convert @plain @out --to crms_norm" + layer_norm);
  t.succeeds("verify @plain @out" + spec);
  Metadata metadata;
  const TensorMap converted = load_safetensors(t / "out", &metadata);
  CHECK(metadata == Metadata{{"format", "pt"}, {"stream.form", "crms_norm"}});
  // The form that a file states counts, and so do options that both files state.
  Metadata mapped = t.load("in").description;
  t.save("said", state, mapped);
  t.succeeds("verify @said @out" + spec);
  mapped.insert_or_assign("model.activation", std::string("relu"));
  t.save("relu", state, mapped);
  CHECK_THAT(t.gives(1, "verify @said @relu" + spec).out, Contains("Their options differ: activation"));
  mapped.insert_or_assign("model.form", std::string("rms_norm"));
  mapped.insert_or_assign("model.storage", std::string("mapped"));
  t.save("mapped", state, mapped);
  t.refuses("convert @mapped @no --to crms_norm" + layer_norm, 3, "in the form rms_norm, not layer_norm");
  // The same tensors as by the model's own description.
  t.succeeds("convert @in @by_model --to crms_norm");
  for (const auto& [name, tensor] : load_safetensors(t / "by_model")) {
    INFO(name);
    CHECK(tensor.to_vector<float>() == converted.at(name).to_vector<float>());
  }
  t.refuses("convert @out @no --to rms_norm" + layer_norm, 3, "crms_norm");
}

TEST_CASE("convert: a description that a reference contradicts converts nothing") {
  const Trained t;
  const TensorMap state = t.load("in").state;
  t.save("plain", state);
  write_text(t / "right.json", described());
  write_text(t / "wrong.json", test::replaced(described(), "attn.proj.weight\": 0", "attn.proj.weight\": 1"));
  const std::string proj = "blocks.0.attn.proj.";
  const Tensor x = reshape(arange(0, 1, 1. / 48, {DType::f32}), {2, 3, 8}), ids = from_vector<int64_t>({2, 0}, {2});
  TensorMap reference, nothing;
  reference.add(proj + "weight.input", x);
  reference.add(proj + "weight.output", linear(x, state.at(proj + "weight"), state.at(proj + "bias")));
  reference.add("token.weight.input", ids);
  reference.add("token.weight.output", embedding(state.at("token.weight"), ids));
  t.save("reference.safetensors", reference);
  std::vector<ZipMember> members;
  for (const auto& [name, tensor] : reference)
    members.push_back({.name = name + ".npy", .bytes = npy_bytes(tensor), .method = members.size() % 2 == 0 ? 8 : 0});
  write_text(t / "reference.npz", zip(members));

  const auto convert = [](const std::string& spec) {
    return "convert @plain @out --to crms_norm --from layer_norm --spec @" + spec + ".json ";
  };
  // Nothing is written, and one line says why.
  const auto contradicts = [&](const std::string& line, auto&& says) {
    const ChildResult r = t.gives(1, line);
    CHECK_THAT(r.out, says);
    CHECK(std::count(r.out.begin(), r.out.end(), '\n') == 1);
    CHECK_FALSE(std::filesystem::exists(t / "out"));
  };
  CHECK_THAT(
      t.succeeds(convert("wrong")).out,  // the shapes are those of the right one
      Contains("converted as the description says; the description itself is unchecked") && !Contains("verified"));
  std::filesystem::remove(t / "out");
  for (const std::string held : {"--reference @reference.npz", "--reference @reference.safetensors"}) {
    contradicts(convert("wrong") + held, Contains("was not written: in the reference the output of "
                                                  "'blocks.0.attn.proj.weight' is off by"));
    CHECK_THAT(t.succeeds(convert("right") + held).out,
               Contains("reference: 0 of 3 readers, 2 of 4 writers agree, at most 0.") &&
                   Contains(" of the bound; with another dim, norm or bias at least ") &&
                   Contains("the description is checked in part: the reference has no rows that "
                            "'blocks.0.attn.qkv.weight' reads.") &&
                   !Contains("verified"));
    CHECK(std::filesystem::remove(t / "out"));
  }
  // Rows without power: the bias alone is seen, and agrees with either description.
  nothing.add(proj + "weight.input", x * 0.0);
  nothing.add(proj + "weight.output", x * 0.0 + state.at(proj + "bias"));
  t.save("nothing", nothing);
  for (const char* spec : {"right", "wrong"})
    contradicts(convert(spec) + "--reference @nothing",
                Contains("out was not written: in the reference the output of 'blocks.0.attn.proj.weight' would agree "
                         "with dim ") &&
                    Contains(", too (0 of the bound): these rows do not show what is right"));
  reference.add("head.weight.input", x);
  t.save("half", reference);
  t.refuses(convert("right") + "--reference @none", 4, "none");
  t.refuses(convert("right") + "--reference @text.txt", 3, "text");
  t.refuses(convert("right") + "--reference @half", 3,
            "half: reference: 'head.weight.input' has no 'head.weight.output'");
  CHECK_FALSE(std::filesystem::exists(t / "out"));
}

TEST_CASE("convert: \"verified\" is about a reference of the whole stream, which finds mistakes that no tensor shows") {
  using namespace isonorm::test;
  const Folder t;
  const TensorMap weights = isonorm::test::state(), rows = program(weights, DType::f32);
  save_safetensors(t / "gpt2", weights);
  const std::string right = gpt2_spec(kWidth);
  write_text(t / "right.json", right);
  write_text(t / "wrong.json", replaced(replaced(right, R"("wpe.weight": 1, )", ""), R"("tied")",
                                        R"("not_on_stream": ["wpe.weight"], "tied")"));
  TensorMap others;
  for (const auto& [name, tensor] : rows)
    if (!name.starts_with("wpe")) others.add(name, tensor);
  save_safetensors(t / "rows", rows), save_safetensors(t / "others", others);
  const std::string convert = "convert @gpt2 @out --to crms_norm --from layer_norm -q ";
  CHECK_THAT(t.succeeds(convert + "--spec @right.json --reference @rows").out,
             Contains("reference: 3 of 3 readers read the sum of what writers wrote, 4 of 4") &&
                 Contains("tensors, verified."));
  CHECK_THAT(t.succeeds("verify @gpt2 @out --spec @right.json").out,
             Contains("equivalent: ") && Contains("That is so by the description, which is unchecked here"));
  CHECK(std::filesystem::remove(t / "out"));
  CHECK_THAT(t.gives(1, convert + "--spec @wrong.json --reference @others").out,
             Contains("the rows that 'h.0.attn.c_attn.weight' reads are not the sum of what writers wrote"));
  CHECK_FALSE(std::filesystem::exists(t / "out"));
}

TEST_CASE("convert: masks of any dtype pass as they are, a layer scale is folded and its spec reads the result") {
  const Trained t;
  std::vector<io::TensorEntry> entries;
  TensorMap state = t.load("in").state;
  for (const auto& [name, tensor] : state) entries.push_back({name, tensor.dtype(), tensor.shape()});
  state.add("mask", from_vector<uint8_t>({1, 0, 1}, {3}));
  entries.push_back({"mask", DType::u8, {3}, 0, 0, "BOOL"});
  state.add("ids", from_vector<uint8_t>({7, 0, 0, 0}, {1, 4}));
  entries.push_back({"ids", DType::u8, {1, 4}, 0, 0, "I32"});
  state.add("ls", from_vector<float>({1, 2, 3, 4, 5, 6, 7, 8}, {8}));
  entries.push_back({"ls", DType::f32, {8}});
  const auto save = [&](const char* name) {
    save_safetensors(t / name, entries, {}, [&](const std::string& tensor) { return state.at(tensor); });
  };
  save("plain");
  const auto scale = [&](const std::string& scaled) {
    write_text(t / "spec.json", described(R"(, "others": ["mask", "ids"], "scales": {")" + scaled + R"(": "ls"})"));
  };
  const std::string spec = " --spec @spec.json", to_crms = " @out --to crms_norm --from layer_norm" + spec;
  scale("blocks.*.mlp.fc2.weight");
  t.refuses("convert @plain" + to_crms, 3, "its bias 'blocks.0.mlp.fc2.bias' none");
  scale("blocks.*.mlp.fc2.*");
  t.succeeds("convert @plain" + to_crms);
  const SafetensorsFile out(t / "out");
  const std::tuple<const char*, const char*, std::vector<uint8_t>> kept[] = {{"mask", "BOOL", {1, 0, 1}},
                                                                             {"ids", "I32", {7, 0, 0, 0}}};
  for (const auto& [name, foreign, values] : kept) {
    const auto entry = std::ranges::find(out.entries(), name, &io::TensorEntry::name);
    CHECK(entry->foreign == foreign);
    CHECK(out.read(*entry).to_vector<uint8_t>() == values);
  }
  t.succeeds("verify @plain @out" + spec);
  t.succeeds("convert @out @back --to layer_norm --from crms_norm" + spec);
  t.succeeds("verify @plain @back" + spec);
  entries.end()[-3].foreign = "I8";
  save("other");
  t.refuses("verify @plain @other" + spec, 3, "'mask' has dtype BOOL");
  const auto reader = std::ranges::find(entries, "blocks.0.mlp.fc1.weight", &io::TensorEntry::name);
  REQUIRE(reader != entries.end());
  reader->foreign = "I16", reader->dtype = DType::u8, reader->shape.push_back(2);
  save_safetensors(t / "whole", entries, {}, [&](const std::string& name) {
    return name == reader->name ? zeros(reader->shape, {DType::u8}) : state.at(name);
  });
  const std::string says = "'blocks.0.mlp.fc1.weight' has dtype I16: integer and quantised weights";
  t.refuses("convert @whole" + to_crms, 3, says);
  t.refuses("verify @whole @whole" + spec, 3, says);
}

TEST_CASE("convert: a file in F16 is written, read and verified as one; a number beyond F16 is refused") {
  const Trained t;
  const auto all_half = [&](const char* name) {
    const SafetensorsFile file(t / name);
    return std::ranges::all_of(file.entries(), [](const io::TensorEntry& e) { return e.foreign == "F16"; });
  };
  for (const std::string form : {"rms_norm", "crms_norm", "crms_isometric"}) {
    CHECK_THAT(t.succeeds("convert @in @half --dtype f16 -q --to " + form).out, Contains("eps of f16"));
    CHECK(all_half("half"));
    t.succeeds("verify @in @half -q");
    t.succeeds("convert @half @back --to layer_norm -q");  // F16 gives F16
    CHECK(all_half("back"));
    CHECK_THAT(t.succeeds("verify @half @back").out, Contains("eps of f16"));
    t.succeeds("convert @half @wide --to layer_norm --dtype f32 -q");
    CHECK_FALSE(all_half("wide"));
    t.succeeds("verify @half @wide -q");
  }
  t.train("raw", "rms_norm", 1);
  t.succeeds("convert @raw @plain --to layer_norm --dtype f16 -q");
  CHECK(all_half("plain"));
  t.succeeds("verify @raw @plain -q");
  // 64 steps of F16 in one entry.
  const SafetensorsFile file(t / "plain");
  save_safetensors(t / "moved", file.entries(), file.metadata(), [&](const std::string& name) {
    Tensor bytes = file.read(*std::ranges::find(file.entries(), name, &io::TensorEntry::name));
    if (name == "blocks.0.mlp.fc2.weight") bytes.mutable_data<uint8_t>()[10] ^= 64;
    return bytes;
  });
  t.gives(1, "verify @raw @moved -q");
  CHECK_THAT(t.succeeds("compare @raw @plain").out, Contains("equivalent: "));
  training::ModelFile large = t.load("in");
  Tensor positions = large.state.at("position.weight");
  positions.mutable_data<float>()[0] = 1e5f;
  t.save("large", large.state, large.description);
  t.refuses("convert @large @none --to rms_norm --dtype f16", 3, "which does not fit f16: its largest number is 65504");
}

TEST_CASE("convert: interrupted or killed at any moment it leaves a whole file or none") {
  const Trained t;
  const std::string out = t / "out";
  for (int i = 0; i < 24; ++i) {
    std::filesystem::remove(out);
    const std::string command = std::string("timeout -s ") + (i % 2 ? "KILL " : "INT ") + std::to_string(0.004 * i) +
                                " " + ISONORM_PROGRAM + " convert " + (t / "in") + " " + out +
                                " --to crms_norm -q > /dev/null 2>&1";
    const int status = std::system(command.c_str());
    if (!std::filesystem::exists(out)) continue;
    INFO("ended after " << 4 * i << " ms, status " << status);
    t.succeeds("verify @in @out -q");
  }
  t.succeeds("convert @in @out --to crms_norm -q");  // files of a killed run are no obstacle
}
