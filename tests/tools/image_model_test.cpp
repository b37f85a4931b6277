// A model of pictures has class names and a pixel scale, which evaluate, resume and --init use. Trainings on images.
#include "tests/support/png.h"
#include "tests/support/small_images.h"
#include "tests/tools/small_run.h"
#include "training/source.h"

namespace fs = std::filesystem;

namespace {

// Pictures of one grey level with some noise, brighter in the one half than in the other.
void write_class(const Folder& f, const std::string& folder, int count, int grey, double darker = 1) {
  fs::create_directories(f / folder);
  for (int i = 0; i < count; ++i)
    write_bytes(f / (folder + "/" + std::to_string(i) + ".png"), png(8, 8, [=](uint32_t y, uint32_t x) {
                  const auto level = static_cast<uint8_t>(
                      (grey + static_cast<int>((y * 7 + x * 3 + static_cast<uint32_t>(i)) % 11)) * darker);
                  return Colour{level, level, level};
                }));
}

const std::string kTrain = "train --data @set --image 8 --patch 4 --width 16 --depth 1 --heads 2 --threads 1 ";

// black/, grey/ and white/ and a model of them at @c.
void write_model(const Folder& f) {
  write_class(f, "set/black", 12, 20), write_class(f, "set/grey", 12, 120), write_class(f, "set/white", 12, 230);
  f.succeeds(kTrain + "--batch 8 --steps 60 --lr 0.01 -q --checkpoint @c --log @log --json @result");
}

double accuracy(const Folder& f, const std::string& model, const std::string& data) {
  f.succeeds("evaluate @" + model + " --data @" + data + " --json @json");
  return f.json("json")["accuracy"];
}

// The checkpoint without these entries, as an older one is.
void forget(const Folder& f, const std::string& to, const Words& entries) {
  Checkpoint c = load_checkpoint(f / "c");
  for (const std::string& entry : entries) c.values.erase(entry);
  save_checkpoint(f / to, c);
}

}  // namespace

TEST_CASE("evaluate: classes of pictures are matched to the model's by name") {
  const Folder f;
  write_model(f);
  CHECK(contains(f.succeeds("info @c").out, "\nclasses     black, grey, white\n"));
  const nlohmann::json names = {"black", "grey", "white"};
  CHECK(f.lines("log")[0]["manifest"]["classes"] == names);
  CHECK(contains(read(f / "result"), "black, grey, white"));
  CHECK(accuracy(f, "c", "set") == 1);
  // A part of the classes, in folders without a part for tests and with one.
  write_class(f, "part/white", 5, 228), write_class(f, "part/grey", 5, 118);
  CHECK(accuracy(f, "c", "part") == 1);
  write_class(f, "parts/train/white", 1, 228), write_class(f, "parts/test/white", 5, 228);
  CHECK(accuracy(f, "c", "parts") == 1);
  // The same pictures by other names.
  write_class(f, "other/blanc", 5, 230), write_class(f, "other/noir", 5, 20);
  f.refuses("evaluate @c --data @other", 3, "other: 'blanc' is none of the classes black, grey, white");
  // Files that are made of the checkpoint have the classes.
  f.succeeds(kTrain + "--batch 8 --steps 61 --extend --ema 0 -q --checkpoint @c");
  f.succeeds("convert @c @converted --to crms_norm -q");
  CHECK(accuracy(f, "converted", "part") == 1);
  // Without class names, as an older file is: by position, which a line says.
  forget(f, "old", {"classes"});
  const ChildResult old = f.succeeds("evaluate @old --data @part");
  CHECK(contains(old.err, text(f / "old", ": classes go by position: the model has no class names\n")));
  CHECK(contains(old.out, "(0 of "));
}

TEST_CASE("evaluate: pixels are scaled as the training scaled them") {
  const Folder f;
  write_model(f);
  const training::DataSpec spec = training::spec_of(SafetensorsFile(f / "c"));
  const std::string info = f.succeeds("info @c").out;
  CHECK(contains(info, "\npictures    the square in the middle resized to 8 x 8\n"));
  CHECK(contains(info, "\npixels      mean 0."));
  // Darkened to a quarter, all pictures are black for this model. By their own mean and deviation they would be as
  // before.
  for (const auto& [name, grey] : {std::pair{"black", 20}, {"grey", 120}, {"white", 230}})
    write_class(f, text("dark/", name), 12, grey, 0.25);
  CHECK(accuracy(f, "c", "dark") < 0.7);
  forget(f, "old", {"preprocessor"});
  const ChildResult old = f.succeeds("evaluate @old --data @dark");
  CHECK(contains(old.err, text(f / "old", ": the model has no pixel scale: using the data's, mean 0.")));
  CHECK(contains(old.out, "100.00 %"));
  // A training that goes on, and one that begins with the weights, keep the scale.
  f.succeeds(kTrain + "--batch 8 --steps 62 --extend -q --checkpoint @c");
  CHECK(training::spec_of(SafetensorsFile(f / "c")).preprocessor == spec.preprocessor);
  f.succeeds("train --data @dark --init @c --batch 8 --steps 1 --threads 1 -q --checkpoint @tuned");
  CHECK(training::spec_of(SafetensorsFile(f / "tuned")).preprocessor == spec.preprocessor);
  CHECK(training::spec_of(SafetensorsFile(f / "tuned")).data != spec.data);
}

TEST_CASE("train --init: rows of the head go to the classes of their names, and a line says that there are others") {
  const Folder f;
  write_model(f);
  const std::string init = "train --init @c --batch 4 --steps 1 --lr 1e-30 --threads 1 --form layer_norm ";
  const TensorMap before = training::load_model_file(f / "c").state;
  const auto rows = [&](const std::string& file) {
    return training::load_model_file(f / file).state.at("head.weight").to_vector<double>();
  };
  const std::vector<double> old = rows("c");
  // A part of the classes: the model keeps all.
  write_class(f, "part/white", 5, 228), write_class(f, "part/black", 5, 18);
  CHECK_FALSE(contains(f.succeeds(init + "--data @part --checkpoint @same").err, "the head has the classes"));
  CHECK(training::spec_of(SafetensorsFile(f / "same")).classes == std::vector<std::string>{"black", "grey", "white"});
  CHECK(rows("same") == old);
  // Others: rows by name, and the mean of all rows for a new one.
  write_class(f, "new/yellow", 5, 200), write_class(f, "new/white", 5, 228);
  CHECK(contains(f.succeeds(init + "--data @new --checkpoint @new_model").err,
                 "the head has the classes black, grey, white; the data have white, yellow: a class keeps its row "
                 "by name, a new one starts with the mean of all rows\n"));
  const std::vector<double> now = rows("new_model");
  REQUIRE(now.size() == 2 * 16);
  for (size_t i = 0; i < 16; ++i) {
    CHECK(now[i] == old[32 + i]);
    CHECK(now[16 + i] == Approx((old[i] + old[16 + i] + old[32 + i]) / 3).margin(2e-7));  // sums of f32 below 1
  }
  CHECK(contains(f.succeeds("info @new_model").out, "\nclasses     white, yellow\n"));
  // A resumed training goes by the names, too: the same pictures under other names are refused.
  fs::rename(f / "new/yellow", f / "new/zebra");
  f.refuses("train --data @new --steps 2 --extend --checkpoint @new_model --threads 1 -q", 3,
            "'zebra' is none of the classes white, yellow");
}

TEST_CASE("evaluate: images that the model was trained on are no test") {
  const Folder f;
  write_model(f);
  f.refuses("evaluate @c --data @set --test-share 0.2", 3,
            "set: --test-share 0.2 is more than 0.1, the share that the training held out");
  CHECK(contains(f.succeeds("evaluate @c --data @set --test-share 0.05").out, " of 3 images)"));
  write_class(f, "set/white", 13, 230);  // one picture more
  CHECK(
      contains(f.succeeds("evaluate @c --data @set").out,
               "set: all 37 images for tests; the training's data have another checksum, but may have some of these"));
  f.refuses("evaluate @c", 2, "--data is needed: the model has the classes black, grey, white, not Fashion-MNIST's");
  // A picture in another class is another data set, even if all pictures stand in the same order.
  const std::string before = training::data_sha256(training::Input::images, f / "set");
  fs::rename(f / "set/grey/9.png", f / "set/white/!.png");
  CHECK(training::data_sha256(training::Input::images, f / "set") != before);
  f.refuses("evaluate @c --data @set/white/1.png", 4, "it is a file, not a folder of images");
  write_class(f, "one/all", 6, 20);
  f.refuses("train --data @one -q", 3, "one: there is one class, all; expected two or more folders of pictures");
}

TEST_CASE("train --test-data: a folder of pictures for tests, and the whole of --data for training") {
  const Folder f;
  write_class(f, "set/black", 6, 20), write_class(f, "set/white", 6, 230);
  write_class(f, "tests/white", 4, 229), write_class(f, "wrong/red", 4, 229);
  const std::string train = kTrain + "--batch 4 --steps 2 -q ";
  CHECK(contains(f.succeeds(train + "--test-data @tests").out, " of 4 images)"));
  f.refuses(kTrain + "--test-data @wrong --steps 2 -q", 3, "wrong: 'red' is none of the classes black, white");
  f.refuses(kTrain + "--test-data @set --test-share 0.5 -q", 2, "--test-share");
  // Images for tests that are there have no share.
  fs::create_directories(f / "own/train"), fs::copy(f / "set", f / "own/train", fs::copy_options::recursive);
  fs::create_directories(f / "own/test"), fs::copy(f / "tests", f / "own/test", fs::copy_options::recursive);
  f.refuses(train + "--test-share 0.3 --data @own", 2, "own has its own test images");
  f.succeeds(kTrain + "--batch 4 --steps 1 -q --data @own --checkpoint @c");
  f.refuses("evaluate @c --data @own --test-share 0.1", 2, "own has its own test images");
  CHECK(f.succeeds("evaluate @c --data @own").out.ends_with(" of 4 images)\n"));
  // Without --test-data the share of each class, rounded up.
  CHECK(contains(f.succeeds(train + "--test-share 0.4").out, " of 6 images)"));
}

TEST_CASE("train --mixup: other losses, the same on resume; tests use unchanged images") {
  const Folder f;
  write_images(f);
  const std::string train =
      "train --data @images --width 8 --depth 1 --heads 2 --patch 14 --batch 8 --dtype f64 --threads 1 -q ";
  const double plain = first_loss(f, train), mixed = first_loss(f, train + "--mixup 0.4");
  CHECK(mixed != plain);
  CHECK(first_loss(f, train + "--mixup 0") == plain);
  CHECK(first_loss(f, train + "--mixup 0.4 --accumulate 4") == Approx(mixed).epsilon(1e-13));
  CHECK(first_loss(f, train + "--mixup 0.4 --label-smoothing 0.1") != mixed);

  const std::string more = train + "--mixup 0.4 --random-flip --steps 12 --save-every 5 --checkpoint ";
  f.succeeds(more + "@whole --json @json");
  std::filesystem::copy_file(f / "whole.previous", f / "part");  // after step 10, in another epoch than it began
  f.succeeds(more + "@part");
  CHECK(read(f / "part") == read(f / "whole"));
  f.refuses(train + "--mixup 0.3 --steps 12 --checkpoint @whole", 3, "was trained with --mixup 0.4, not 0.3");
  f.succeeds("evaluate @whole --data @images --json @tested");
  CHECK(f.json("tested")["loss"] == Approx(f.json("json")["test"]["loss"].get<double>()).epsilon(1e-14));
}

TEST_CASE(
    "train, evaluate: damage that a decoder passes over is one line on stderr; a picture that is cut off ends them") {
  const Folder f;
  const TensorMap pictures = load_safetensors("tests/fixtures/pictures.safetensors");
  const auto write_picture = [&](const std::string& path, const std::string& name) {
    std::filesystem::create_directories(std::filesystem::path(f / path).parent_path());
    write_bytes(f / path, pictures.at(name).to_vector<uint8_t>());
  };
  for (const char* path : {"set/train/cat/1.JPG", "set/train/dog/1.jpg", "set/test/dog/1.jpg"})
    write_picture(path, "extraneous.jpg");
  const std::string train =
      "train --data @set --image 8 --patch 4 --width 8 --depth 1 --heads 2 --batch 2 --steps 1 --threads 1 -q ";
  const std::string line = text(" read as far as possible; the first is ", f / "set/test/dog/1.jpg",
                                ": Corrupt JPEG data: 6 extraneous bytes before marker 0xd9\n");
  CHECK(f.succeeds(train + "--checkpoint @c").err == "isonorm train: 3 damaged pictures are" + line);
  CHECK(f.succeeds("evaluate @c --data @set").err == "isonorm evaluate: 1 damaged picture is" + line);  // of the tests
  std::filesystem::resize_file(f / "set/train/cat/1.JPG", pictures.at("extraneous.jpg").numel() - 11);
  f.refuses(train, 3, "1.JPG: the JPEG cannot be decoded: the file is cut off");
}
