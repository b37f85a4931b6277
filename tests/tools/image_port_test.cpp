// Class names and pixel scale of a published Vision Transformer: from its folder into a file of ours, into a folder and
// into an ONNX file.
#include "tests/support/png.h"
#include "tests/tools/small_run.h"

namespace fs = std::filesystem;

namespace {

const std::string kVit = "tests/fixtures/families/vit";  // five classes, images with a side of 8
const nlohmann::json kNames = {{"0", "cat"}, {"1", "dog"}, {"2", "crane"}, {"3", "eel, of water"}, {"4", "crane"}};

// The folder with these names and this preprocessor_config.json.
std::string vit(const Folder& f, const nlohmann::json& names, const nlohmann::json& preprocessor) {
  const std::string folder = changed(f, kVit, "id2label", names);
  write_text(folder + "/preprocessor_config.json", preprocessor.dump());
  return folder;
}

nlohmann::json google(const nlohmann::json& size) {
  return {{"do_normalize", true},
          {"do_resize", true},
          {"image_mean", {0.5, 0.4, 0.3}},
          {"image_std", {0.25, 0.5, 0.5}},
          {"resample", 2},
          {"size", size},
          {"feature_extractor_type", "ViTFeatureExtractor"}};
}

}  // namespace

TEST_CASE("import, export: class names and preprocessor of a Vision Transformer") {
  const Folder f;
  CHECK(f.succeeds("import " + vit(f, kNames, google(8)) + " @m").err.empty());
  const std::string info = f.succeeds("info @m").out;
  CHECK(contains(info, "\nclasses     cat, dog, crane, eel, of water, crane\n"));
  CHECK(contains(info, "\npixels      mean 0.5 0.4 0.3, standard deviation 0.25 0.5 0.5\n"));
  CHECK(contains(info, "\npictures    the whole picture resized to 8 x 8\n"));
  f.succeeds("export @m @back");
  const nlohmann::json config = f.json("back/config.json"), pixels = f.json("back/preprocessor_config.json");
  CHECK(config["id2label"] == kNames);
  CHECK(config["label2id"] == nlohmann::json{{"cat", 0}, {"dog", 1}, {"eel, of water", 3}, {"crane", 4}});
  CHECK_FALSE(config.contains("num_labels"));
  CHECK(pixels["image_mean"] == nlohmann::json{0.5, 0.4, 0.3});
  CHECK(pixels["size"] == nlohmann::json{{"height", 8}, {"width", 8}});
  f.succeeds("import @back @again");
  CHECK(read(f / "again") == read(f / "m"));
  // The names and the preprocessor are the model's, not the ones in the folder of --like.
  f.succeeds("import " + vit(f, kNames, google({{"height", 8}, {"width", 8}})) + " @m");
  f.succeeds("export @m @like --like " +
             vit(f, {{"0", "a"}, {"1", "b"}, {"2", "c"}, {"3", "d"}, {"4", "e"}}, google(9)));
  CHECK(f.json("like/config.json")["id2label"] == kNames);
  CHECK(f.json("like/preprocessor_config.json") == pixels);
  f.succeeds("export @m @m.onnx");
  const training::DataSpec spec = training::spec_of(SafetensorsFile(f / "m"));
  const std::string onnx = read(f / "m.onnx");
  CHECK((contains(onnx, "classes") && contains(onnx, R"(["cat","dog","crane","eel, of water","crane"])")));
  CHECK((contains(onnx, "preprocessor") && contains(onnx, spec.preprocessor)));
  // Pictures go by the names, of which one is ambiguous.
  const auto grey = [](auto, auto) { return Colour{9, 9, 9}; };
  fs::create_directories(f / "set/dog"), write_bytes(f / "set/dog/1.png", png(8, 8, grey));
  f.succeeds("evaluate @m --data @set --json @json");
  CHECK(f.json("json")["predictions"] == 1);
  fs::rename(f / "set/dog", f / "set/crane");
  f.refuses("evaluate @m --data @set", 3, "'crane' is the name of two classes");
}

TEST_CASE("import: missing entries of a folder, and entries for unsupported computations") {
  const Folder f;
  const ChildResult r = f.succeeds("import " + kVit + " @m");
  CHECK(r.err == "isonorm import: without a pixel scale: there is no " + kVit + "/preprocessor_config.json\n");
  const training::DataSpec spec = training::spec_of(SafetensorsFile(f / "m"));
  CHECK((spec.classes.empty() && spec.preprocessor.empty()));  // LABEL_0 is no name
  nlohmann::json cubic = google(8);
  cubic["resample"] = 3;
  f.refuses("import " + vit(f, kNames, cubic) + " @none", 3,
            "preprocessor_config.json (a folder without it is imported without a pixel scale): \"resample\" is '3', "
            "expected 2: this program resizes by BILINEAR");
  f.refuses("import " + vit(f, kNames, google(16)) + " @none", 3,
            "pixel scale): \"size\" gives images with a side of 16 pixels, the model's have 8");
  f.refuses("import " + vit(f, {{"0", "a"}, {"1", "b"}, {"2", "c"}, {"3", "d"}, {"5", "e"}}, google(8)) + " @none", 3,
            "config.json: \"id2label\" has 5 entries, and no name of class 4");
  CHECK_FALSE(fs::exists(f / "none"));
  // Damage of an entry is said, with its name.
  SafetensorsFile file(f / "m");
  Metadata metadata = file.metadata();
  metadata["classes"] = "[1]", metadata["preprocessor"] = "{}";
  save_safetensors(f / "forged", load_safetensors(f / "m"), metadata);
  f.refuses("info @forged", 3, "forged: its entry 'classes' is '[1]', expected a JSON list of names");
  metadata["classes"] = R"(["a","b"])";
  save_safetensors(f / "forged", load_safetensors(f / "m"), metadata);
  for (const char* verb : {"info @forged", "export @forged @none", "export @forged @none.onnx",
                           "evaluate @forged --data @set", "train --init @forged --data @set -q"})
    f.refuses(verb, 3, "its entry 'classes' has 2 names, the model '5' classes");
  metadata.erase("classes");
  save_safetensors(f / "forged", load_safetensors(f / "m"), metadata);
  fs::create_directories(f / "set/dog");
  write_bytes(f / "set/dog/1.png", png(8, 8, [](auto, auto) { return Colour{9, 9, 9}; }));
  f.refuses("evaluate @forged --data @set", 3, "the model's preprocessor: there is no \"image_mean\"");
}
