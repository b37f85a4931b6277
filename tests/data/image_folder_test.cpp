// Folders of pictures: classes, parts and warnings.
#include "io/data/image_folder.h"

#include <algorithm>
#include <cstdlib>

#include "core/system/warning.h"
#include "io/data/image_sets.h"
#include "io/data/picture.h"
#include "io/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

// A picture of tests/fixtures/pictures.py.
void write_picture(const std::string& path, const char* name) {
  static const TensorMap pictures = load_safetensors("tests/fixtures/pictures.safetensors");
  fs::create_directories(fs::path(path).parent_path());
  write_bytes(path, pictures.at(name).to_vector<uint8_t>());
}

}  // namespace

TEST_CASE("folders of pictures are classes in the order of their names") {
  const TempFolder f;
  const std::string dir = f.path.string();
  CHECK_FALSE(data::holds_images(dir));
  write_picture(dir + "/train/dog/b.JPG", "420.jpg");
  write_picture(dir + "/train/cat/z.png", "rgba8.png");
  write_picture(dir + "/train/cat/more/a.png", "grey8.png");
  write_bytes(dir + "/train/cat/notes.txt", {});
  write_picture(dir + "/val/dog/1.jpeg", "420.jpg");
  CHECK(data::holds_images(dir));
  const data::ImageSets set = data::load_images(dir, {.side = 4});
  CHECK(set.classes == 2);
  CHECK(set.train.labels.to_vector<int64_t>() == std::vector<int64_t>{0, 0, 1});
  CHECK(set.test.labels.to_vector<int64_t>() == std::vector<int64_t>{1});
  CHECK(set.train.images.shape() == Dims{3, 4, 4, 3});
  std::vector<uint8_t> want;
  for (const char* name : {"/train/cat/more/a.png", "/train/cat/z.png", "/train/dog/b.JPG"}) {
    const auto one = data::square_of(data::read_picture(dir + name), 4).to_vector<uint8_t>();
    want.insert(want.end(), one.begin(), one.end());
  }
  CHECK(set.train.images.to_vector<uint8_t>() == want);
  CHECK(data::image_files(dir) == std::vector<std::string>{dir + "/train/cat/more/a.png", dir + "/train/cat/z.png",
                                                           dir + "/train/dog/b.JPG", dir + "/val/dog/1.jpeg"});
  write_picture(dir + "/val/bird/1.png", "grey8.png");
  CHECK_THROWS_WITH(data::load_images(dir, {.side = 4}), Contains("'bird' is none of the classes cat, dog"));
  fs::remove_all(dir + "/val/bird"), fs::create_directory(dir + "/train/ant");
  CHECK_THROWS_WITH(data::load_images(dir, {.side = 4}), Contains("/train/ant: has no .png"));
  fs::remove_all(dir + "/train/ant"), fs::remove_all(dir + "/val");
  CHECK(data::load_images(dir, {.side = 4}).test.labels.to_vector<int64_t>() == std::vector<int64_t>{0});  // a share
}

TEST_CASE("links to folders of pictures are followed, and links to folders around them are not") {
  const TempFolder f;
  const std::string dir = f.path.string(), set = dir + "/set";
  for (const char* name : {"/set/train/cat/1.png", "/set/train/dog/1.png", "/set/val/cat/1.png", "/far/more/2.png"})
    write_picture(dir + name, "grey8.png");
  for (const char* name : {"/set/train/cat/up", "/set/train/cat/up_again", "/far/up", "/far/more/up"})
    fs::create_directory_symlink("..", dir + name);
  fs::create_directory_symlink(".", dir + "/far/here");
  for (const char* name : {"/train/cat/linked", "/train/cat/twice", "/train/fox"})
    fs::create_directory_symlink(dir + "/far/more", set + name);
  fs::create_directory_symlink(dir + "/far", set + "/train/owl");
  std::vector<std::string> want;
  for (const char* name : {"/train/cat/1.png", "/train/cat/linked/2.png", "/train/cat/twice/2.png", "/train/dog/1.png",
                           "/train/fox/2.png", "/train/owl/more/2.png", "/val/cat/1.png"})
    want.push_back(set + name);
  CHECK(data::image_files(set) == want);
  const std::vector<std::string> all = data::ImageFolder::all_files(set);
  for (const std::string& file : want) CHECK(std::ranges::count(all, file) == 1);
  CHECK(all.size() < 100);
}

TEST_CASE("pictures whose decoder warns are counted, and said in one warning") {
  const TempFolder f;
  const std::string dir = f.path.string();
  write_picture(dir + "/train/cat/1.jpg", "420.jpg");
  write_picture(dir + "/train/cat/2.jpg", "extraneous.jpg");
  write_picture(dir + "/test/cat/1.jpg", "420.jpg");
  std::vector<std::string> lines;
  const WarningHandler before = set_warning_handler([&](const std::string& line) { lines.push_back(line); });
  const data::ImageSets set = data::load_images(dir, {.side = 4});
  const std::string why = ": Corrupt JPEG data: 6 extraneous bytes before marker 0xd9";
  REQUIRE(lines.size() == 1);
  CHECK(lines[0] == text("1 damaged picture is read as far as possible; the first is ", dir, "/train/cat/2.jpg", why));
  CHECK(set.train.images.numel() == 2 * 4 * 4 * 3);
  data::load_images(dir, {.side = 4});
  CHECK(lines.size() == 1);  // said once
  write_picture(dir + "/test/cat/1.jpg", "extraneous.jpg");
  write_picture(dir + "/test/cat/2.jpg", "extraneous.jpg");
  data::load_images(dir, {.side = 4});
  set_warning_handler(before);
  REQUIRE(lines.size() == 2);
  CHECK(lines[1] == text("3 damaged pictures are read as far as possible; the first is ", dir, "/test/cat/1.jpg", why));
}

TEST_CASE("pictures of formats that are not read are counted, and said in one warning") {
  const TempFolder f;
  const std::string dir = f.path.string();
  write_picture(dir + "/train/cat/1.jpg", "420.jpg");
  write_picture(dir + "/test/cat/1.PNG", "rgb8.png");
  for (const char* name : {"/train/cat/2.WebP", "/test/cat/2.bmp", "/test/cat/notes.txt"}) write_bytes(dir + name, {});
  std::vector<std::string> lines;
  const WarningHandler before = set_warning_handler([&](const std::string& line) { lines.push_back(line); });
  CHECK(data::load_images(dir, {.side = 4}).train.labels.numel() == 1);
  set_warning_handler(before);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0] ==
        text("2 pictures are left out, expected .png, .jpg or .jpeg; the first is ", dir, "/train/cat/2.WebP"));
}

TEST_CASE("a set that is named is looked for in $ISONORM_DATA") {
  const TempFolder f;
  const char* before = std::getenv("ISONORM_DATA");
  const std::string kept = before ? before : "";
  setenv("ISONORM_DATA", f.path.c_str(), 1);
  CHECK_THROWS_WITH(data::image_folder("cifar10"),
                    Contains("cifar10: there is no folder of that name") && Contains(f.path.string()));
  fs::create_directory(f / "cifar10");
  CHECK(data::image_folder("cifar10") == f / "cifar10");
  CHECK(data::image_folder("elsewhere") == "elsewhere");
  before ? setenv("ISONORM_DATA", kept.c_str(), 1) : unsetenv("ISONORM_DATA");
}
