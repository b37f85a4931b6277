// Tests which kind of model reads the data at a path.
#include "training/source.h"

#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
using namespace isonorm::training;

TEST_CASE("data_kind: folders of images, folders of pairs, files, and paths that do not say") {
  const TempFolder f;
  const auto folder = [&](const char* name, std::initializer_list<const char*> files) {
    std::filesystem::create_directories(f / name);
    for (const char* file : files) write_text(f / name + "/" + file, "x");
    return f / name;
  };
  write_text(f / "text", "x");
  folder("pictures/train/cat", {"1.png"}), folder("classes/cat", {"1.JPG"});
  write_text(f / "one.jpeg", "x");  // no text
  CHECK(kind_of_data(f / "text") == Input::text);
  CHECK(kind_of_data(folder("idx", {"train-images-idx3-ubyte.gz"})) == Input::images);
  CHECK(kind_of_data(folder("plain", {"train-images-idx3-ubyte"})) == Input::images);
  CHECK(kind_of_data(folder("cifar", {"data_batch_1.bin"})) == Input::images);
  CHECK(kind_of_data(f / "pictures") == Input::images);
  CHECK(kind_of_data(f / "classes") == Input::images);
  CHECK(kind_of_data(folder("pairs", {"source.txt", "target.txt"})) == Input::pairs);
  for (const std::string& none :
       {std::string(), f / "nothing", f / "one.jpeg", folder("half", {"source.txt"}), folder("empty", {})}) {
    INFO(none);
    CHECK_FALSE(kind_of_data(none).has_value());
    CHECK(model_for(none) == nullptr);
  }
  CHECK(model_for(f / "text") == &kGpt);
  CHECK(model_for(f / "idx") == &kVit);
  CHECK(model_for(f / "pairs") == &kTranslator);
}
