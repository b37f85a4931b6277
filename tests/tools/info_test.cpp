// isonorm info describes files and this machine.
#include "core/kernels/isa_choice.h"
#include "core/system/name_pattern.h"
#include "tests/tools/small_run.h"

TEST_CASE("info: a checkpoint says its model, its training and its tensors") {
  const Folder f;
  f.succeeds("train +small --depth 3 --steps 2 --lr 0.25 -q --checkpoint @model");
  const std::string out = f.succeeds("info @model").out;
  for (const char* line :
       {"model       GPT, rms_norm, raw weights\n", "vocab 7, context 8, width 8, depth 3, heads 2\n",
        "training    after step 2 ", " --lr 0.25 ", "alphabet    7 bytes\n", "  0 to 2 ", "weight [24, 8], bias [24]\n",
        "weight [7, 8]\n"})
    CHECK_THAT(out, Contains(line));
  CHECK_THAT(out, !Contains("optimizer."));
  std::string damaged = read(f / "model");
  damaged[damaged.size() - 3] ^= 1;
  write_text(f / "damaged", damaged);
  f.refuses("info @damaged", 3, "damaged");
  f.refuses("info @none", 4, "none: cannot open");
  std::filesystem::create_directory(f / "hub");
  write_text(f / "hub/config.json", "[");
  f.refuses("info @hub", 3, "isonorm info: " + (f / "hub") + ": config.json: no JSON object");  // named once
}

TEST_CASE("info: without a file, CPU, kernels and BLAS, and if products wait for OpenBLAS") {
  const Folder f;
  const std::string cpu = name_of(this_processor());
  const std::string kernels = text("\nkernels     ", name_of(isa()), ": ", isa_choice().reason, '\n');
  const auto told = [&](std::vector<std::string> environment) {
    environment.push_back("OPENBLAS_CORETYPE=Prescott");
    return f.succeeds("info", {.environment = environment}).out;
  };
  const std::string out = told({}), forced = told({"ISONORM_GEMM=openblas"});
  CHECK_THAT(out, Contains("\nBLAS        OpenBLAS 0.") && Contains("\nthreads     ") && Contains(kernels));
  CHECK_THAT(out, Contains(cpu.empty() ? "\nCPU" : " (" + cpu + ")\n"));
  CHECK_THAT(forced, Contains("computes all matrix products of f32 and f64"));
  const int bits = vector_bits(this_processor());
  if (isa() == Isa::base) return;
  CHECK_THAT(out, Contains(", core Prescott, ") && Contains(" flavour: computes nothing\n"));
  CHECK_THAT(forced, Contains(text(", slowly: its core has vectors of 128 bits, this CPU of ", bits, '\n')));
  CHECK_THAT(f.succeeds("info", {.environment = {"ISONORM_ISA=" + std::string(name_of(kCompiled[0]))}}).out,
             Contains(text("\nkernels     ", name_of(kCompiled[0]), ": ISONORM_ISA=")));
}

TEST_CASE("train: the numbers are the same for whatever CPU OpenBLAS takes this one; the log says what computed them") {
  if (isa() == Isa::base) return;  // OpenBLAS computes the products
  const Folder f;
  const auto log = [&](const std::string& core) {
    f.succeeds("train +small --steps 5 -q --log @" + core, {.environment = {"OPENBLAS_CORETYPE=" + core}});
    return f.lines(core);
  };
  const auto narrow = log("Prescott"), wide = log("Haswell");
  const nlohmann::json& manifest = narrow[0]["manifest"];
  CHECK(manifest["blas_core"] == "Prescott");
  CHECK(wide[0]["manifest"]["blas_core"] == "Haswell");
  CHECK(manifest["products"] == "isonorm");
  CHECK(manifest["instructions"] == name_of(isa()));
  CHECK(manifest["instructions_reason"] == isa_choice().reason);
  REQUIRE(narrow.size() == wide.size());
  for (size_t i = 1; i < narrow.size(); ++i)
    for (const char* number : {"loss", "gradient_norm"})
      CHECK(narrow[i].value(number, nlohmann::json()) == wide[i].value(number, nlohmann::json()));
}

TEST_CASE("info: any safetensors file, whatever its names") {
  const Folder f;
  TensorMap tensors;
  const auto matrix = [](int64_t rows, int64_t columns) { return empty({rows, columns}); };
  for (const char* name : {"layers.0.w", "layers.1.w", "layers.2.w", "layers.4.w"}) tensors.add(name, matrix(300, 7));
  tensors.add("layers.3.w", matrix(2, 7));
  tensors.add("odd\x1b..b", matrix(1, 1));
  save_safetensors(f / "any", tensors,
                   {{"made", "by\nhand"}, {"characters", "Al"}, {"tokenizer", "gpt2"}, {"model.width", "odd"}});
  const std::string out = f.succeeds("info @any").out;
  CHECK_THAT(out, Contains("says        made = by hand\n") && Contains("6 tensors of f32") && Contains("8,415") &&
                      Contains("  0 to 2 ") && Contains("each 2,100") && Contains("  3 ") && Contains("odd\\x1b"));
  CHECK_THAT(out, Contains("says        characters = Al\n") && Contains("says        tokenizer = gpt2\n") &&
                      Contains("says        model.width = odd\n"));
  CHECK_THAT(out, !Contains("\x1b"));
  std::string deep = "a";
  for (int i = 1; i < kMostNameParts; ++i) deep += ".0";
  TensorMap one;
  one.add(deep, matrix(1, 1));
  save_safetensors(f / "deep", one, {});
  CHECK_THAT(f.succeeds("info @deep").out, Contains("1 tensors of f32"));
  // Names are looked up, and sorted once: comparing each with each takes 26 s of the processor's time, this 0.3.
  TensorMap many;
  for (int64_t i = 0; i < 40'000; ++i) many.add(text("layers.", i * 7'919 % 40'000, ".w"), matrix(1, 1));
  for (int64_t i = 0; i < 40'000; ++i) many.add(text("m", i, ".w"), matrix(1, 1));
  save_safetensors(f / "many", many, {});
  const std::string lines = f.succeeds("info @many", {.limits = {{RLIMIT_CPU, 10}}}).out;
  CHECK(lines.find("\n  0 to 39999 ") != lines.npos);
  CHECK(lines.ends_with("\nm39999" + lines.substr(lines.rfind("m39999") + 6)));
  TensorMap flat;
  for (int64_t i = 0; i < 40'000; ++i) flat.add(text("m", i), matrix(1, 1));
  save_safetensors(f / "flat", flat, {});
  const std::string line = f.succeeds("info @flat").out;
  CHECK_THAT(line, Contains("m0 [1, 1], m1 [1, 1], ") && Contains(", m39999 [1, 1]  160,000 bytes\n"));
  CHECK(line.size() < 2'500);
  const std::string folder = f.succeeds("info tests/fixtures/families/bloom").out;
  CHECK_THAT(folder, Contains("model       bloom\n") && Contains("word_embeddings"));
}

TEST_CASE("evaluate: the test pass that the training made, of checkpoints and of files of a model") {
  const Folder f;
  f.succeeds("train +small --steps 5 -q --checkpoint @model --json @trained.json --ema 0.5 --ema-file @average");
  const double trained = f.json("trained.json")["test"]["loss"];
  const std::string said = f.succeeds("evaluate @average --data @text.txt --json @average.json").out;
  CHECK(f.json("average.json")["loss"] == trained);  // test passes take the average
  CHECK_THAT(said, Contains("held-out loss ") && Contains(" tokens)\n"));
  f.succeeds("evaluate @model --data @text.txt --json @model.json");
  CHECK(f.json("model.json")["loss"] != trained);
  CHECK(f.json("model.json")["predictions"] == f.json("average.json")["predictions"]);
  f.refuses("evaluate @model", 2, "needs a text file: --data FILE");
  write_text(f / "other.txt", read(f / "text.txt") + "q");
  f.refuses("evaluate @model --data @other.txt", 3, "is none of the 7 bytes");
  write_text(f / "ids", std::string(400, '\0'));
  f.refuses("evaluate @model --data @ids --token-vocab 9", 3, "its model is of 7 tokens, the data are of 9");
}
