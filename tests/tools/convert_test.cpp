// convert and verify run as a person runs them: train, convert, verify, and what they refuse.
#include <cstdlib>

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/index.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "nn/vit.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"
#include "tests/support/zip.h"
#include "tests/equivalence/gpt2_program.h"
#include "tests/tools/child.h"
#include "training/model_file.h"

using namespace isonorm;
using Catch::Matchers::Contains;

namespace {

// A folder with a text and a small model trained on it, with learned gains and biases.
struct Trained : TempFolder {
  const TempFolder& folder = *this;
  Trained() {
    std::string text;
    for (int i = 0; i < 600; ++i) text += "abcd efg"[i * i % 7];
    write_text(folder / "text", text);
    train("in", "layer_norm", "1");
  }
  void train(const std::string& name, const std::string& form, const std::string& seed) {
    const ChildResult r = run_child({"train",
                                     "--model",
                                     "gpt",
                                     "--data",
                                     folder / "text",
                                     "--width",
                                     "8",
                                     "--depth",
                                     "1",
                                     "--heads",
                                     "2",
                                     "-q",
                                     "--context",
                                     "8",
                                     "--batch",
                                     "4",
                                     "--steps",
                                     "5",
                                     "--affine",
                                     "--form",
                                     form,
                                     "--seed",
                                     seed,
                                     "--lr",
                                     "0.1",
                                     "--checkpoint",
                                     folder / name});
    REQUIRE(r.code == 0);
  }
  ChildResult convert(const std::string& from, const std::string& to, const std::string& form,
                      std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"convert", folder / from, folder / to, "--to", form});
    return run_child(more);
  }
  ChildResult verify(const std::string& a, const std::string& b, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"verify", folder / a, folder / b});
    return run_child(more);
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

// One line on stderr, nothing on stdout.
void check_refusal(const ChildResult& r, int code, const std::string& part) {
  INFO(r.out << r.err);
  CHECK(r.code == code);
  CHECK_THAT(r.err, Contains(part));
  CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
}

}  // namespace

TEST_CASE("convert and verify: a trained model in every form, there and back") {
  const Trained t;
  for (const char* form : {"rms_norm", "crms_norm", "crms_isometric"}) {
    const ChildResult r = t.convert("in", form, form, {"--from", "layer_norm", "--data", t / "text"});
    INFO(r.out << r.err);
    CHECK(r.code == 0);
    CHECK_THAT(r.out, Contains("blocks.0.attn.qkv.weight") && Contains("gain folded") &&
                          Contains("dropped: folded into its readers"));
    CHECK_THAT(r.out, Contains("in f64, logits of data differ by") && Contains("as stored, logits of data differ by"));
    CHECK_THAT(r.out, Contains("verified."));
    const ChildResult same = t.verify("in", form, {"--data", t / "text"});
    CHECK(same.code == 0);
    CHECK_THAT(same.out, Contains("Same: the two are one function."));
    CHECK(t.convert(form, "back", "layer_norm", {"-q"}).code == 0);
    CHECK(t.verify("in", "back", {"-q"}).code == 0);
    CHECK_THAT(t.verify("back", form, {"-q"}).out, Catch::Matchers::StartsWith("Same: the two are one function. "));
  }
  // The means that rounding left in the writers of a coarse RMSNorm file are no reason to refuse it.
  CHECK(t.convert("in", "coarse", "rms_norm", {"--dtype", "bf16", "-q"}).code == 0);
  CHECK(t.convert("coarse", "fine", "layer_norm", {"--dtype", "f64", "-q"}).code == 0);
  CHECK(t.verify("coarse", "fine").code == 0);
  CHECK(t.convert("crms_norm", "other", "crms_isometric").code == 0);
  CHECK(t.verify("crms_norm", "other").code == 0);
}

TEST_CASE("verify: two trainings are two functions, and what their options differ in is named") {
  Trained t;
  t.train("other", "layer_norm", "2");
  const ChildResult r = t.verify("in", "other");
  CHECK(r.code == 1);
  CHECK_THAT(r.out, Contains(": different") && Contains("Different: the two are not one function: "));
  Metadata description = training::load_model_file(t / "in").description;
  description.insert_or_assign("model.eps", std::string("1e-03"));
  save_safetensors(t / "eps", training::load_model_file(t / "in").state, description);
  const ChildResult eps = t.verify("in", "eps");
  CHECK(eps.code == 1);
  CHECK_THAT(eps.out, Contains("Their options differ: eps 1e-05 and 0.001."));
}

TEST_CASE("convert: raw weights of another form are the Pre-LN model's") {
  Trained t;
  t.train("raw", "crms_norm", "3");
  CHECK(t.convert("raw", "out", "rms_norm", {"--from", "crms_norm"}).code == 0);
  CHECK(t.verify("raw", "out").code == 0);
  check_refusal(t.convert("raw", "no", "rms_norm", {"--from", "crms_isometric"}), 3, "form is crms_norm");
}

TEST_CASE("convert: raw weights of another form are exported as they are") {
  Trained t;
  t.train("raw", "rms_norm", "4");
  const ChildResult r = t.convert("raw", "plain", "layer_norm");
  INFO(r.out << r.err);
  CHECK(r.code == 0);
  CHECK_THAT(r.out, Contains("holds raw weights: those of the Pre-LN model"));
  const training::ModelFile before = training::load_model_file(t / "raw"),
                            after = training::load_model_file(t / "plain");
  CHECK(after.description.at("model.form") == "layer_norm");
  for (const auto& [name, tensor] : before.state)
    CHECK(tensor.to_vector<float>() == after.state.at(name).to_vector<float>());
  CHECK_THAT(t.verify("raw", "plain").out, Contains("Every tensor is equal to the last bit."));
  CHECK(t.convert("raw", "wide", "layer_norm", {"--dtype", "f64"}).code == 0);
  CHECK(t.verify("raw", "wide", {"-q"}).code == 0);
}

TEST_CASE("audit and compare read what verify reads") {
  Trained t;
  const auto audit = [&](const std::string& file, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"audit", "--checkpoint", t / file, "-q", "--batch", "2"});
    return run_child(more);
  };
  const ChildResult r = audit("in");
  INFO(r.out << r.err);
  CHECK(r.code == 0);
  CHECK(audit("in", {"--width", "8", "--affine"}).code == 0);
  check_refusal(audit("in", {"--width", "16"}), 2, "--width: 16, in");
  CHECK(t.convert("in", "crms", "crms_norm", {"-q"}).code == 0);
  check_refusal(audit("crms"), 3, "isonorm convert --to layer_norm");
  save_safetensors(t / "plain", training::load_model_file(t / "in").state);
  const ChildResult same = run_child({"compare", t / "in", t / "plain"});
  INFO(same.out << same.err);
  CHECK(same.code == 0);
}

TEST_CASE("verify: a ViT and a GPT are different models") {
  const Trained t;
  nn::Vit vit({.image = 6, .patch = 3, .classes = 4, .transformer = {.width = 8, .depth = 1, .heads = 2}});
  save_safetensors(t / "vit", vit.state_dict(), training::describe(vit));
  const ChildResult r = t.verify("in", "vit");
  CHECK(r.code == 1);
  CHECK(r.out == "Different models: the first is a GPT, the second a ViT.\n");
}

TEST_CASE("convert: usage is 2, what cannot be converted 3, files 4, and OUT does not appear") {
  const Trained t;
  check_refusal(t.convert("in", "out", "batch_norm"), 2, "batch_norm");
  check_refusal(t.convert("in", "in", "rms_norm"), 2, "is the file of IN, which would be lost");
  check_refusal(t.convert("in", "text", "rms_norm", {"--data", t / "text"}), 2, "--data");
  check_refusal(t.convert("in", "text", "rms_norm", {"--spec", t / "text", "--from", "layer_norm"}), 2, "--spec");
  check_refusal(t.convert("in", "out", "rms_norm", {"--dtype", "f16"}), 2, "f16");
  check_refusal(t.convert("in", "out", "rms_norm", {"--from", "rms_norm"}), 3, "its form is layer_norm");
  check_refusal(t.convert("in", "out", "layer_norm"), 3, "has the form layer_norm already");
  check_refusal(t.convert("in", "out", "rms_norm", {"--eps", "1e-6"}), 3, "another eps is another function");
  check_refusal(t.convert("none", "out", "rms_norm"), 4, "none");
  check_refusal(t.convert("in", "no/such/out", "rms_norm"), 4, "no/such/out");
  check_refusal(t.convert("in", "out", "rms_norm", {"--data", t / "none"}), 4, "none");
  check_refusal(t.convert("in", "out", "rms_norm", {"--spec", t / "none"}), 2, "--from");
  write_text(t / "other_text", "vwxyz vwxyz vwxyz vwxyz");
  check_refusal(t.convert("in", "out", "rms_norm", {"--data", t / "other_text"}), 3, "vocabulary");

  std::vector<uint8_t> bytes = read_bytes(t / "in");
  write_bytes(t / "short", std::span(bytes).first(bytes.size() / 2));
  check_refusal(t.convert("short", "out", "rms_norm"), 3, "short");
  bytes[bytes.size() - 1] ^= 1;
  write_bytes(t / "flipped", bytes);
  check_refusal(t.convert("flipped", "out", "rms_norm"), 3, "checksum");
  save_safetensors(t / "plain", training::load_model_file(t / "in").state);
  check_refusal(t.convert("plain", "out", "rms_norm"), 3, "--spec");
  CHECK_FALSE(std::filesystem::exists(t / "out"));
}

TEST_CASE("convert: a file that other tools wrote, by its description") {
  const Trained t;
  TensorMap state;
  for (const auto& [name, tensor] : training::load_model_file(t / "in").state) state.add(name, tensor);
  save_safetensors(t / "plain", state, {{"format", "pt"}});
  write_text(t / "spec.json", described());
  const std::vector<std::string> spec = {"--spec", t / "spec.json"};
  const ChildResult r = t.convert("plain", "out", "crms_norm", {"--spec", t / "spec.json", "--from", "layer_norm"});
  INFO(r.out << r.err);
  CHECK(r.code == 0);
  CHECK(t.verify("plain", "out", spec).code == 0);
  Metadata metadata;
  const TensorMap converted = load_safetensors(t / "out", &metadata);
  CHECK(metadata == Metadata{{"format", "pt"}, {"stream.form", "crms_norm"}});
  // What a file says of itself counts: a form, and options where both say something.
  Metadata mapped = training::load_model_file(t / "in").description;
  save_safetensors(t / "said", state, mapped);
  CHECK(t.verify("said", "out", spec).code == 0);
  mapped.insert_or_assign("model.activation", std::string("relu"));
  save_safetensors(t / "relu", state, mapped);
  const ChildResult relu = t.verify("said", "relu", spec);
  CHECK(relu.code == 1);
  CHECK_THAT(relu.out, Contains("Their options differ: activation"));
  mapped.insert_or_assign("model.form", std::string("rms_norm"));
  mapped.insert_or_assign("model.storage", std::string("mapped"));
  save_safetensors(t / "mapped", state, mapped);
  check_refusal(t.convert("mapped", "no", "crms_norm", {"--spec", t / "spec.json", "--from", "layer_norm"}), 3,
                "of rms_norm, not of layer_norm");
  // The same tensors as by the model's own description.
  CHECK(t.convert("in", "by_model", "crms_norm").code == 0);
  for (const auto& [name, tensor] : load_safetensors(t / "by_model")) {
    INFO(name);
    CHECK(tensor.to_vector<float>() == converted.at(name).to_vector<float>());
  }
  check_refusal(t.convert("out", "no", "rms_norm", {"--spec", t / "spec.json", "--from", "layer_norm"}), 3,
                "crms_norm");
}

TEST_CASE("convert: a description that a reference contradicts converts nothing") {
  const Trained t;
  const TensorMap state = training::load_model_file(t / "in").state;
  save_safetensors(t / "plain", state);
  const std::string right = described();
  std::string wrong = right;
  wrong.replace(wrong.find("attn.proj.weight\": 0"), 20, "attn.proj.weight\": 1");
  write_text(t / "right.json", right), write_text(t / "wrong.json", wrong);
  const std::string proj = "blocks.0.attn.proj.";
  const Tensor x = reshape(arange(0, 1, 1. / 48, {DType::f32}), {2, 3, 8});
  TensorMap reference;
  reference.add(proj + "weight.input", x);
  reference.add(proj + "weight.output", linear(x, state.at(proj + "weight"), state.at(proj + "bias")));
  reference.add("token.weight.input", from_vector<int64_t>({2, 0}, {2}));
  reference.add("token.weight.output", embedding(state.at("token.weight"), from_vector<int64_t>({2, 0}, {2})));
  save_safetensors(t / "reference.safetensors", reference);
  std::vector<ZipMember> members;
  for (const auto& [name, tensor] : reference)
    members.push_back({.name = name + ".npy", .bytes = npy_bytes(tensor), .method = members.size() % 2 == 0 ? 8 : 0});
  write_text(t / "reference.npz", zip(members));

  const auto convert = [&](const std::string& spec, const std::string& held_to) {
    std::vector<std::string> more = {"--from", "layer_norm", "--spec", t / spec};
    if (!held_to.empty()) more.insert(more.end(), {"--reference", t / held_to});
    return t.convert("plain", "out", "crms_norm", more);
  };
  const ChildResult unchecked = convert("wrong.json", "");  // the shapes are those of the right one
  CHECK(unchecked.code == 0);
  CHECK_THAT(unchecked.out, Contains("converted as the description says; the description itself is unchecked"));
  CHECK_THAT(unchecked.out, !Contains("verified"));
  std::filesystem::remove(t / "out");
  for (const char* file : {"reference.npz", "reference.safetensors"}) {
    const ChildResult no = convert("wrong.json", file);
    INFO(no.out << no.err);
    CHECK(no.code == 1);
    CHECK_THAT(no.out,
               Contains("was not written: in the reference the output of 'blocks.0.attn.proj.weight' is off by"));
    CHECK(std::count(no.out.begin(), no.out.end(), '\n') == 1);
    CHECK_FALSE(std::filesystem::exists(t / "out"));
    const ChildResult yes = convert("right.json", file);
    INFO(yes.out << yes.err);
    CHECK(yes.code == 0);
    CHECK_THAT(yes.out, Contains("reference: 0 of 3 readers, 2 of 4 writers agree, at most 0.") &&
                            Contains(" of the bound; with another dim, norm or bias at least "));
    CHECK_THAT(yes.out, Contains("the description is checked in part: the reference has no rows that "
                                 "'blocks.0.attn.qkv.weight' reads.") &&
                            !Contains("verified"));
    CHECK(std::filesystem::remove(t / "out"));
  }
  // Rows without power: the bias alone is seen, and agrees with either description.
  TensorMap nothing;
  nothing.add(proj + "weight.input", x * 0.0);
  nothing.add(proj + "weight.output", x * 0.0 + state.at(proj + "bias"));
  save_safetensors(t / "nothing", nothing);
  for (const char* spec : {"right.json", "wrong.json"}) {
    const ChildResult no = convert(spec, "nothing");
    INFO(no.out << no.err);
    CHECK(no.code == 1);
    CHECK_THAT(no.out, Contains("out was not written: in the reference the output of 'blocks.0.attn.proj.weight' would "
                                "agree with dim ") &&
                           Contains(", too (0 of the bound): these rows do not show what is right"));
    CHECK(std::count(no.out.begin(), no.out.end(), '\n') == 1);
    CHECK_FALSE(std::filesystem::exists(t / "out"));
  }
  check_refusal(t.convert("in", "out", "crms_norm", {"--reference", t / "reference.npz"}), 2,
                "--reference needs --spec");
  check_refusal(convert("right.json", "none"), 4, "none");
  check_refusal(convert("right.json", "text"), 3, "text");
  reference.add("head.weight.input", x);
  save_safetensors(t / "half", reference);
  check_refusal(convert("right.json", "half"), 3, "half: reference: 'head.weight.input' has no 'head.weight.output'");
  CHECK_FALSE(std::filesystem::exists(t / "out"));
}

TEST_CASE("convert: verified is what a reference shows of the whole stream, and it finds what no tensor shows") {
  using namespace isonorm::test;
  const Trained t;
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
  const auto convert = [&](const std::string& spec, const std::string& held_to) {
    return t.convert("gpt2", "out", "crms_norm",
                     {"--from", "layer_norm", "--spec", t / spec, "--reference", t / held_to, "-q"});
  };
  const ChildResult yes = convert("right.json", "rows");
  INFO(yes.out << yes.err);
  CHECK(yes.code == 0);
  CHECK_THAT(yes.out, Contains("reference: 3 of 3 readers read the sum of what writers wrote, 4 of 4") &&
                          Contains("tensors, verified."));
  CHECK_THAT(t.verify("gpt2", "out", {"--spec", t / "right.json"}).out,
             Contains("Same: ") && Contains("That is so by the description, which is unchecked here"));
  CHECK(std::filesystem::remove(t / "out"));
  const ChildResult no = convert("wrong.json", "others");
  INFO(no.out << no.err);
  CHECK(no.code == 1);
  CHECK_THAT(no.out, Contains("the rows that 'h.0.attn.c_attn.weight' reads are not the sum of what writers wrote"));
  CHECK_FALSE(std::filesystem::exists(t / "out"));
}

TEST_CASE("convert: masks of any dtype pass as they are, a layer scale is folded and its spec reads the result") {
  const Trained t;
  std::vector<io::TensorEntry> entries;
  TensorMap state = training::load_model_file(t / "in").state;
  for (const auto& [name, tensor] : state) entries.push_back({name, tensor.dtype(), tensor.shape()});
  state.add("mask", from_vector<uint8_t>({1, 0, 1}, {3}));
  entries.push_back({"mask", DType::u8, {3}, 0, 0, "BOOL"});
  state.add("ids", from_vector<uint8_t>({7, 0, 0, 0}, {1, 4}));
  entries.push_back({"ids", DType::u8, {1, 4}, 0, 0, "I32"});
  state.add("ls", from_vector<float>({1, 2, 3, 4, 5, 6, 7, 8}, {8}));
  entries.push_back({"ls", DType::f32, {8}});
  const auto read = [&](const std::string& name) { return state.at(name); };
  save_safetensors(t / "plain", entries, {}, read);
  const auto spec = [&](const std::string& scaled) {
    write_text(t / "spec.json", described(R"(, "others": ["mask", "ids"], "scales": {")" + scaled + R"(": "ls"})"));
  };
  const std::vector<std::string> by_spec = {"--spec", t / "spec.json", "--from", "layer_norm"};
  spec("blocks.*.mlp.fc2.weight");
  check_refusal(t.convert("plain", "out", "crms_norm", by_spec), 3, "its bias 'blocks.0.mlp.fc2.bias' none");
  spec("blocks.*.mlp.fc2.*");
  const ChildResult r = t.convert("plain", "out", "crms_norm", by_spec);
  INFO(r.out << r.err);
  CHECK(r.code == 0);
  const SafetensorsFile out(t / "out");
  const auto entry = [&](const std::string& name) {
    return *std::find_if(out.entries().begin(), out.entries().end(), [&](const auto& e) { return e.name == name; });
  };
  CHECK(entry("mask").foreign == "BOOL");
  CHECK(out.read(entry("mask")).to_vector<uint8_t>() == std::vector<uint8_t>{1, 0, 1});
  CHECK(entry("ids").foreign == "I32");
  CHECK(out.read(entry("ids")).to_vector<uint8_t>() == std::vector<uint8_t>{7, 0, 0, 0});
  const ChildResult same = t.verify("plain", "out", {"--spec", t / "spec.json"});
  INFO(same.out << same.err);
  CHECK(same.code == 0);
  CHECK(t.convert("out", "back", "layer_norm", {"--spec", t / "spec.json", "--from", "crms_norm"}).code == 0);
  CHECK(t.verify("plain", "back", {"--spec", t / "spec.json"}).code == 0);
  entries.end()[-3].foreign = "I8";
  save_safetensors(t / "other", entries, {}, read);
  check_refusal(t.verify("plain", "other", {"--spec", t / "spec.json"}), 3, "'mask' has dtype BOOL");
  const auto reader = std::ranges::find(entries, "blocks.0.mlp.fc1.weight", &io::TensorEntry::name);
  REQUIRE(reader != entries.end());
  reader->foreign = "F16", reader->dtype = DType::u8, reader->shape.push_back(2);
  save_safetensors(t / "half", entries, {}, [&](const std::string& name) {
    return name == reader->name ? zeros(reader->shape, {DType::u8}) : state.at(name);
  });
  const std::string line = "'blocks.0.mlp.fc1.weight' has dtype F16: integer and quantised weights";
  check_refusal(t.convert("half", "out", "crms_norm", by_spec), 3, line);
  check_refusal(t.verify("half", "half", {"--spec", t / "spec.json"}), 3, line);
}

TEST_CASE("convert: one shard of a model is called so") {
  const Trained t;
  save_safetensors(t / "model-00001-of-00002.safetensors", training::load_model_file(t / "in").state);
  check_refusal(t.convert("model-00001-of-00002.safetensors", "out", "rms_norm"), 3, "shard 00001 of 00002");
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
    CHECK(t.verify("in", "out", {"-q"}).code == 0);
  }
  CHECK(t.convert("in", "out", "crms_norm", {"-q"}).code == 0);  // what a killed run left does not stand in the way
}
