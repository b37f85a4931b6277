// Trainings on images, of a folder as small as such a folder can be.
#include "io/safetensors.h"
#include "tests/support/small_images.h"
#include "tests/tools/small_run.h"

using namespace isonorm;

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
