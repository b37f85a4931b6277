// data_files() names every file that would be read from a folder, whichever data set is in it.
#include "io/data/image_sets.h"

#include <algorithm>
#include <filesystem>

#include "io/data/image_folder.h"
#include "io/data/pairs.h"
#include "io/data/published_sets.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"

using namespace isonorm::data;

TEST_CASE("files of data: what sets read is among them") {
  const TempFolder f;
  for (const char* name : {"source.txt", "target.txt", "test_batch.bin", "train-images-idx3-ubyte.gz",
                           "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte.gz"})
    write_text(f / name, "x");
  for (int i = 1; i <= 5; ++i) write_text(f / ("data_batch_" + std::to_string(i) + ".bin"), "x");
  const std::vector<std::string> all = data_files(f.path.string());
  const auto named = [&](const std::string& file) {
    return std::any_of(all.begin(), all.end(), [&](const std::string& other) {
      std::error_code none;
      return std::filesystem::equivalent(file, other, none);
    });
  };
  for (const auto& entry : std::filesystem::directory_iterator(f.path)) {
    INFO(entry.path());
    CHECK(named(entry.path().string()));
  }
  for (const auto& files :
       {Pairs::files(f.path.string()), Cifar10::files(f.path.string()), FashionMnist::files(f.path.string())})
    for (const std::string& file : files) CHECK(named(file));
  const std::string dir = f / "pictures";
  for (const char* folder : {"/train/cat", "/val/cat/more"}) std::filesystem::create_directories(dir + folder);
  for (const char* name : {"/train/cat/a.png", "/val/cat/more/b.JPG"}) write_text(dir + name, "x");
  CHECK(ImageFolder::files(dir).size() == 2);
  for (const std::string& file : ImageFolder::files(dir)) CHECK(std::ranges::count(data_files(dir), file) == 1);
  for (const char* name : {"/train/cat/c.gif", "/val/labels.txt"}) {  // not read, but part of the data
    write_text(dir + name, "x");
    CHECK(std::ranges::count(data_files(dir), dir + name) == 1);
  }
  const std::vector<std::string> own = data_files("text.txt"), none = data_files("");
  CHECK(std::count(own.begin(), own.end(), "text.txt") == 1);
  CHECK(std::count(none.begin(), none.end(), FashionMnist::files(kFashionMnistDir).front()) == 1);
  CHECK(std::count(none.begin(), none.end(), "") == 0);
}
