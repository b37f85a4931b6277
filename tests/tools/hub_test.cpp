// Models of the hub's families, with true and false descriptions and what PyTorch computes (tests/fixtures/hub.py).
#include <filesystem>

#include "tests/tools/small_run.h"

namespace {

struct Described {
  const char *name, *says;
  int code = 1;  // 0: verified
};

const Described kDescribed[] = {
    {"gpt2", "5 of 5 readers read the sum of what writers wrote, 6 of 6", 0},
    {"neox", "5 of 5 readers read the sum of what writers wrote, 5 of 5", 0},  // attention and MLP side by side
    {"opt", "9 of 9 readers read the sum of what writers wrote, 6 of 6", 0},   // positions begin at 2
    {"vit", "9 of 9 readers read the sum of what writers wrote, 7 of 7", 0},   // a class token before patches
    {"dinov2", "9 of 9 readers read the sum of what writers wrote", 0},  // a head that reads two rows side by side
    {"dinov2_exchanged_scales", "reads are not the sum of what writers wrote"},
    {"gpt2_without_positions", "the rows that 'transformer.h.0.attn.c_attn.weight' reads are not the sum"},
    {"bloom", "reads are not the sum of what writers wrote"},        // a norm behind the embeddings
    {"clip_vision", "reads are not the sum of what writers wrote"},  // the same
    {"opt_post_ln", "reads are not the sum of what writers wrote"},
    {"nemotron", "9 of 9 readers read the sum of what writers wrote, 5 of 5", 0},
    {"nemotron_plain_gain", "_proj.weight' is off by"},  // its gain is stored as gamma - 1
    {"gpt2_kept_norm", "'transformer.h.0.ln_2' sees the stream, the sum of what 3 writers wrote"},
    {"opt_forgotten_reader", "_proj' reads the rows of a norm, and the description names no such reader"},
};

std::string fixture(const char* name, const char* end) { return text("tests/fixtures/hub/", name, end); }

}  // namespace

TEST_CASE("hub: the program's outputs verify a true description; a false one converts nothing") {
  const Folder f;
  for (const Described& d : kDescribed) {
    INFO(d.name);
    const std::vector<std::string> words = {
        "convert", fixture(d.name, ".safetensors"), f.file("out"), "--from", "layer_norm", "--to", "crms_norm",
        "--spec",  fixture(d.name, ".json"),        "-q"};
    std::vector<std::string> held = words;
    held.insert(held.end(), {"--reference", fixture(d.name, ".rows")});
    const ChildResult r = run_child(held);
    INFO(r.out << r.err);
    CHECK(r.code == d.code);
    CHECK_THAT(r.out + r.err, Contains(d.says));
    CHECK((r.out.find("tensors, verified.") != std::string::npos) == (d.code == 0));
    CHECK(std::filesystem::exists(f.file("out")) == (d.code == 0));
    std::filesystem::remove(f.file("out"));
    // Without the reference all of them convert, and none is called verified.
    const ChildResult alone = run_child(words);
    CHECK(alone.code == 0);
    CHECK_THAT(alone.out, Contains("the description itself is unchecked") && !Contains("verified"));
    std::filesystem::remove(f.file("out"));
  }
}

TEST_CASE("hub: with --fold none every tensor but the head keeps its name and shape") {
  const Folder f;
  const std::string convert =
      text("convert ", fixture("gpt2", ".safetensors"), " @out --from layer_norm --spec ", fixture("gpt2", ".json"),
           " --reference ", fixture("gpt2", ".rows"), " --fold none -q --to ");
  CHECK_THAT(f.succeeds(convert + "rms_norm").out, Contains("verified."));
  const TensorMap before = load_safetensors(fixture("gpt2", ".safetensors")), after = load_safetensors(f / "out");
  CHECK(after.size() == before.size() + 1);
  for (const auto& [name, tensor] : before) CHECK(after.at(name).shape() == tensor.shape());
  CHECK(same_bytes(after.at("lm_head.weight"), before.at("transformer.wte.weight")));
  CHECK(same_bytes(after.at("transformer.ln_f.bias"), before.at("transformer.ln_f.bias")));
  f.succeeds(text("verify ", fixture("gpt2", ".safetensors"), " @out --spec ", fixture("gpt2", ".json")));
  std::filesystem::remove(f / "out");
  f.refuses(convert + "crms_norm", 3, "is to keep its gain of 12 entries");
  f.refuses("convert @text.txt @out --to rms_norm --fold none", 2, "--fold needs --spec");
}

TEST_CASE("hub: a norm's gain is no writer") {
  const Folder f;
  nlohmann::json spec = nlohmann::json::parse(read(fixture("bloom", ".json")));
  spec.erase("not_on_stream");
  spec["writers"]["transformer.word_embeddings_layernorm"] = 0;
  write_text(f.file("spec"), spec.dump());
  const ChildResult r = run_child({"convert", fixture("bloom", ".safetensors"), f.file("out"), "--from", "layer_norm",
                                   "--to", "rms_norm", "--spec", f.file("spec")});
  CHECK(r.code == 3);
  CHECK_THAT(r.err, Contains("writer 'transformer.word_embeddings_layernorm.weight' of shape [12] is a vector"));
}

TEST_CASE("hooks: the description is checked, and is part of the program") {
  const Folder f;
  const ChildResult r = run_child({"hooks", fixture("gpt2", ".json")});
  CHECK(r.code == 0);
  CHECK_THAT(r.out, Contains("def record(model, run") && Contains(read(fixture("gpt2", ".json"))));
  CHECK(run_child({"hooks", fixture("gpt2", ".rows")}).code == 3);
  CHECK(run_child({"hooks", f.file("none")}).code == 4);
}
