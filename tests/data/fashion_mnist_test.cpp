// Fashion-MNIST as Debian packages it, where it is installed, and made-up folders everywhere.
#include "io/data/published_sets.h"

#include "io/data/loader.h"
#include "tests/support/catch.h"
#include "tests/support/gzip.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using Raw = std::vector<uint8_t>;

namespace {

Raw images(uint8_t n, uint8_t height = 28) {
  Raw b = {0, 0, 8, 3, 0, 0, 0, n, 0, 0, 0, height, 0, 0, 0, 28};
  for (int i = 0; i < n * height * 28; ++i) b.push_back(static_cast<uint8_t>(i));
  return b;
}
Raw labels(Raw values) {
  Raw b = {0, 0, 8, 1, 0, 0, 0, static_cast<uint8_t>(values.size())};
  for (uint8_t v : values) b.push_back(v);
  return b;
}
void write_set(const TempFolder& f) {
  write_bytes(f / "train-images-idx3-ubyte.gz", gzip(images(3)));
  write_bytes(f / "train-labels-idx1-ubyte.gz", gzip(labels({9, 0, 5})));
  write_bytes(f / "t10k-images-idx3-ubyte", images(2));
  write_bytes(f / "t10k-labels-idx1-ubyte", labels({1, 2}));
}
auto load(const TempFolder& f) { return data::FashionMnist::load(f.path.string()); }

}  // namespace

TEST_CASE("Fashion-MNIST: compressed and plain files") {
  const TempFolder f;
  write_set(f);
  const auto set = load(f);
  CHECK(set.train.images.shape() == Dims{3, 28, 28});
  CHECK(set.train.labels.to_vector<int64_t>() == std::vector<int64_t>{9, 0, 5});
  CHECK(set.test.images.shape() == Dims{2, 28, 28});
  CHECK(set.test.images.data<uint8_t>()[300] == 300 % 256);
}

TEST_CASE("Fashion-MNIST: a folder that is not right is refused in one line") {
  const TempFolder f;
  CHECK_THROWS_WITH(load(f), Contains("install the Debian package dataset-fashion-mnist, or pass --data DIR"));
  const std::tuple<const char*, Raw, const char*> wrong[] = {
      {"train-labels-idx1-ubyte.gz", gzip(labels({9, 0})), "3 images but 2 labels"},
      {"t10k-labels-idx1-ubyte", labels({1, 10}), "label 10 of image 1"},
      {"t10k-images-idx3-ubyte", images(2, 27), "[2, 27, 28], expected [n, 28, 28]"},
      {"t10k-images-idx3-ubyte", images(0), "[0, 28, 28]"},
      {"t10k-images-idx3-ubyte", labels({1}), "[1], expected [n, 28, 28]"},
      {"t10k-labels-idx1-ubyte", images(1), "[1, 28, 28], expected rank 1"}};
  for (const auto& [file, bytes, says] : wrong) {
    write_set(f);
    write_bytes(f / file, bytes);
    CHECK_THROWS_WITH(load(f), Contains(says));
  }
}

TEST_CASE("Fashion-MNIST: the installed set") {
  if (!std::filesystem::exists(std::string(data::kFashionMnistDir) + "/t10k-labels-idx1-ubyte.gz")) {
    WARN("dataset-fashion-mnist is not installed: not checked");
    return;
  }
  const auto set = data::FashionMnist::load();
  REQUIRE(set.train.images.shape() == Dims{60000, 28, 28});
  REQUIRE(set.test.images.shape() == Dims{10000, 28, 28});
  for (const auto* split : {&set.train, &set.test}) {
    std::vector<int64_t> count(10);
    for (int64_t label : split->labels.to_vector<int64_t>()) ++count[label];
    for (int64_t c : count) CHECK(c == split->labels.numel() / 10);  // the classes are balanced
  }
  const data::PixelScale scale = data::measured_scale(set.train);
  CHECK((scale.mean == std::vector{data::kFashionMnistMean} &&
         scale.std == std::vector{data::kFashionMnistStd}));  // to the last bit
}
