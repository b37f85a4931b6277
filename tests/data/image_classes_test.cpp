// Classes by name, folders that are split, and pixels with a scale for each channel.
#include <algorithm>
#include <set>

#include "core/system/warning.h"
#include "io/data/image_sets.h"
#include "io/data/loader.h"
#include "tests/support/catch.h"
#include "tests/support/png.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

// Pictures 0, 1, ... of a class, each of one grey level: base + its number.
void write_class(const std::string& dir, int count, int base) {
  fs::create_directories(dir);
  for (int i = 0; i < count; ++i) {
    const auto grey = static_cast<uint8_t>(base + i);
    write_bytes(dir + "/" + std::to_string(100 + i) + ".png", png(3, 3, [=](auto, auto) {
                  return Colour{grey, grey, grey};
                }));
  }
}

// The grey levels of a part, and its labels.
std::vector<int> greys(const data::LabelledImages& set) {
  const auto pixels = set.images.to_vector<uint8_t>();
  std::vector<int> all;
  for (size_t i = 0; i < pixels.size(); i += pixels.size() / static_cast<size_t>(set.size())) all.push_back(pixels[i]);
  return all;
}
std::vector<int64_t> labels(const data::LabelledImages& set) { return set.labels.to_vector<int64_t>(); }

data::ImageSets load(const std::string& dir, double held_out, std::vector<std::string> classes = {}) {
  return data::load_images(dir, {.side = 3, .classes = std::move(classes), .held_out = held_out});
}

}  // namespace

TEST_CASE("a folder of class folders is split: of each class a share, rounded up, is for tests") {
  const TempFolder f;
  const std::string dir = f.path.string();
  write_class(dir + "/cat", 20, 0), write_class(dir + "/dog/more", 11, 100), write_class(dir + "/eel", 1, 200);
  // Copies that a notebook and a Mac leave behind are no pictures.
  write_class(dir + "/.hidden", 1, 250), write_class(dir + "/cat/.ipynb_checkpoints", 3, 250);
  write_text(dir + "/dog/._100.png", "no picture");
  write_class(dir + "/__MACOSX/cat", 1, 250);
  CHECK(data::holds_images(dir));
  CHECK(data::class_names(dir) == std::vector<std::string>{"cat", "dog", "eel"});
  const data::ImageSets set = load(dir, 0.1);
  CHECK((set.classes == 3 && set.names == data::class_names(dir)));
  CHECK(labels(set.test) == std::vector<int64_t>{0, 0, 1, 1});  // a class of one picture is for training
  CHECK(set.train.size() == 28);
  std::set<int> all;
  for (const data::LabelledImages* part : {&set.train, &set.test})
    for (const int grey : greys(*part)) all.insert(grey);
  CHECK(all.size() == 32);
  CHECK(greys(load(dir, 0.1).test) == greys(set.test));
  CHECK(greys(set.test)[0] > 1);  // not the first ones, which may be of one camera
  CHECK(load(dir, 0).test.size() == 0);
  CHECK(load(dir, 1).train.size() == 0);
  CHECK(load(dir, 1).test.size() == 32);
  CHECK(data::image_files(dir).size() == 32);
  CHECK(data::class_counts(dir) == "cat 20\ndog 11\neel 1\n");
  CHECK_FALSE(data::has_own_tests(dir));
  CHECK(data::load_images(dir, {.side = 3, .tests_only = true}).train.size() == 0);
  CHECK_THROWS_WITH(load(dir, 1.5), Contains("held out is the share 1.5, expected 0 to 1"));
  fs::create_directory(dir + "/empty");
  CHECK_THROWS_WITH(load(dir, 0.1), Contains("/empty: has no .png, .jpg or .jpeg file"));
  const TempFolder other;
  write_class(other / "only", 0, 0), write_text(other / "only/notes.txt", "");
  CHECK_FALSE(data::holds_images(other.path.string()));
  CHECK(data::ImageFolder::why_not(other.path.string()) == "no images are found there");
  CHECK_THROWS_WITH(data::load_images(other.path.string(), {.side = 3}),
                    Contains("no images are found there; expected") && Contains("CLASS/*.png or train/CLASS/*.png"));
  write_text(other / "only/1.webp", ""), write_text(other / "only/2.BMP", "");
  CHECK_THAT(data::ImageFolder::why_not(other.path.string()),
             Contains("2 pictures have a format that is not read; the first"));
  write_text(other / "flat.jpg", "");
  CHECK(data::ImageFolder::why_not(other.path.string()) == "1 picture is in no folder of a class");
}

TEST_CASE("folders for training and for tests have usual names in any case; parts by other names are refused") {
  const TempFolder parts;
  const std::string set = parts.path.string();
  for (const char* part : {"/Training/", "/Val/"})
    for (const char* name : {"cat", "dog"}) write_class(set + part + name, 2, 10);
  CHECK((data::has_own_tests(set) && data::class_counts(set).empty()));
  CHECK((load(set, 0.1).train.size() == 4 && load(set, 0.1).test.size() == 4));
  fs::rename(set + "/Training", set + "/Fold1");
  CHECK_THROWS_WITH(load(set, 0.1),
                    Contains("both 'Fold1' and 'Val' have folders 'cat', 'dog', so they are not classes"));
  fs::remove_all(set + "/Fold1");  // a part for tests alone
  CHECK((load(set, 0.1).train.size() == 0 && load(set, 0.1).test.size() == 4));
  CHECK(data::class_names(set) == std::vector<std::string>{"cat", "dog"});
  fs::rename(set + "/Val", set + "/train");
  CHECK((load(set, 0.1).train.size() == 2 && load(set, 0.1).test.size() == 2));
  fs::remove_all(set + "/train");
  write_class(set + "/train", 2, 10), write_class(set + "/car", 2, 100);  // vehicles
  CHECK(data::class_names(set) == std::vector<std::string>{"car", "train"});
}

TEST_CASE("labels are the places of the folders' names among the classes that are given") {
  const TempFolder f;
  const std::string dir = f.path.string();
  write_class(dir + "/dog", 2, 100), write_class(dir + "/ant", 1, 0);
  CHECK(labels(load(dir, 1).test) == std::vector<int64_t>{0, 1, 1});
  const std::vector<std::string> classes = {"fox", "dog", "cat", "ant"};
  const data::ImageSets set = load(dir, 1, classes);
  CHECK((set.classes == 4 && set.names == classes));
  CHECK(labels(set.test) == std::vector<int64_t>{3, 1, 1});
  CHECK_THROWS_WITH(load(dir, 1, {"cat", "dog"}), Contains(dir + ": 'ant' is none of the classes cat, dog"));
  CHECK_THROWS_WITH(load(dir, 1, {"ant", "dog", "dog"}), Contains("'dog' is the name of two classes"));
  // Of parts that are there, too; a class without a picture to train on may be tested then.
  fs::create_directory(dir + "/train"), fs::rename(dir + "/ant", dir + "/train/ant");
  fs::create_directory(dir + "/val"), fs::rename(dir + "/dog", dir + "/val/dog");
  CHECK(labels(load(dir, 0.1, classes).test) == std::vector<int64_t>{1, 1});
  CHECK_THROWS_WITH(load(dir, 0.1), Contains("/val: 'dog' is none of the classes ant"));
  CHECK(data::image_files(dir).size() == 3);
  std::vector<std::string> lines;
  const WarningHandler before = set_warning_handler([&](const std::string& line) { lines.push_back(line); });
  for (const char* name : {"/dev", "/validation", "/valid"}) {
    write_class(dir + name + "/ant", 1, 50);
    fs::remove_all(dir + "/val");
    CHECK(load(dir, 0.1).test.size() == 1);
  }
  set_warning_handler(before);
  CHECK(lines == std::vector{dir + "/dev is not read: tests are on " + dir + "/validation",
                             dir + "/validation is not read: tests are on " + dir + "/valid"});
}

TEST_CASE("published sets have their published class names") {
  const TempFolder f;
  for (const char* name : {"/mnist", "/fashion-mnist", "/FashionMNIST/raw", "/mnist/clothes", "/clothes"}) {
    const std::string dir = f.path.string() + name;
    fs::create_directories(dir);
    for (const char* part : {"/train", "/t10k"}) {
      std::vector<uint8_t> images = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 28};
      images.resize(images.size() + 2 * 28 * 28);
      write_bytes(dir + part + "-images-idx3-ubyte", images);
      write_bytes(dir + part + "-labels-idx1-ubyte", std::vector<uint8_t>{0, 0, 8, 1, 0, 0, 0, 2, 9, 3});
    }
  }
  const std::string dir = f.path.string();
  CHECK(data::class_names(dir + "/mnist")[7] == "7");
  CHECK(data::class_names(dir + "/fashion-mnist/")[9] == "Ankle boot");
  CHECK(data::class_names(dir + "/FashionMNIST/raw")[3] == "Dress");
  CHECK(data::class_names(dir + "/clothes").empty());
  CHECK(data::class_names(dir + "/mnist/clothes").empty());
  CHECK(load(dir + "/mnist", 0, {"9", "8", "3"}).test.labels.to_vector<int64_t>() == std::vector<int64_t>{0, 2});
  CHECK_THROWS_WITH(load(dir + "/mnist", 0, {"9", "8"}), Contains("/mnist: '3' is none of the classes 9, 8"));
  const data::ImageSets unnamed = load(dir + "/clothes", 0, {"9", "8"});
  CHECK((unnamed.names.empty() && unnamed.classes == 10 && labels(unnamed.test) == std::vector<int64_t>{9, 3}));
  write_bytes(dir + "/data_batch_1.bin", {});
  CHECK(data::class_names(dir)[9] == "truck");
}

TEST_CASE("each channel has its own mean and deviation, and pixels outside of an image are black") {
  const data::LabelledImages set{from_vector<uint8_t>({10, 20, 30, 40, 50, 60}, {1, 1, 2, 3}),
                                 from_vector<int64_t>({0}, {1})};
  const data::PixelScale scale{.mean = {0.1, 0.2, 0.3}, .std = {0.5, 0.25, 2}, .dtype = DType::f64};
  const auto x = data::slice_batch(set, 0, 1, scale).images.to_vector<double>();
  for (size_t i = 0; i < 6; ++i)
    CHECK(x[i] ==
          Approx((10.0 * static_cast<double>(i + 1) / 255 - scale.mean[i % 3]) / scale.std[i % 3]).epsilon(1e-15));
  CHECK_THROWS_WITH(data::slice_batch(set, 0, 1, {.mean = {0, 0}, .std = {1, 1}}),
                    Contains("the scale has 2 means and 2 deviations, images have 3 channels"));
  const auto dark_images = [] { return from_vector(std::vector<double>(12), {1, 2, 2, 3}); };
  CHECK_THROWS_WITH(data::augment(dark_images(), {.crop = 1}, {1, 2}, 1, 1), Contains("2 numbers of the background"));
  int beside = 0;
  for (int64_t step = 0; step < 20; ++step) {
    const Tensor one = dark_images();
    data::augment(one, {.crop = 1}, {1, 2, 3}, 1, step);
    const auto pixels = one.to_vector<double>();
    for (size_t p = 0; p < 12; p += 3)
      if (pixels[p] != 0) {
        CHECK((pixels[p] == 1 && pixels[p + 1] == 2 && pixels[p + 2] == 3));
        ++beside;
      }
  }
  CHECK(beside > 10);
}
