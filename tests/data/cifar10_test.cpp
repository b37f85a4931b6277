// CIFAR-10's binary files, as the tests write them.
#include "io/data/published_sets.h"

#include "io/data/loader.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using Raw = std::vector<uint8_t>;

namespace {

// A record whose pixel p has the colours (seed + p, seed + p + 100, seed + p + 200) modulo 256.
void add_record(Raw& file, uint8_t label, int seed) {
  file.push_back(label);
  for (int colour = 0; colour < 3; ++colour)
    for (int p = 0; p < 1024; ++p) file.push_back(static_cast<uint8_t>(seed + p + 100 * colour));
}

void write_set(const TempFolder& f) {
  for (int i = 1; i <= 5; ++i) {
    Raw file;
    add_record(file, static_cast<uint8_t>(i), i);
    if (i == 2) add_record(file, 9, 77);
    write_bytes(f / text("data_batch_", i, ".bin"), file);
  }
  Raw file;
  add_record(file, 0, 50);
  write_bytes(f / "test_batch.bin", file);
}
auto load(const TempFolder& f) { return data::Cifar10::load(f.path.string()); }

}  // namespace

TEST_CASE("CIFAR-10: planes become pixels, files follow each other") {
  const TempFolder f;
  CHECK_FALSE(data::Cifar10::is_in(f.path.string()));
  write_set(f);
  CHECK(data::Cifar10::is_in(f.path.string()));
  const auto set = load(f);
  CHECK(set.train.images.shape() == Dims{6, 32, 32, 3});
  CHECK(set.test.images.shape() == Dims{1, 32, 32, 3});
  CHECK(set.train.labels.to_vector<int64_t>() == std::vector<int64_t>{1, 2, 9, 3, 4, 5});
  const int seeds[] = {1, 2, 77, 3, 4, 5};
  const uint8_t* pixel = set.train.images.data<uint8_t>();
  for (int seed : seeds)
    for (int p = 0; p < 1024; ++p)
      for (int colour = 0; colour < 3; ++colour) CHECK(*pixel++ == static_cast<uint8_t>(seed + p + 100 * colour));
  // A batch keeps the colours behind each other.
  const data::Batch b = data::slice_batch(set.test, 0, 1, {.mean = {0}, .std = {1}, .dtype = DType::f64});
  CHECK(b.images.shape() == Dims{1, 32, 32, 3});
  CHECK(b.images.to_vector<double>()[3 * 7 + 1] == (50 + 7 + 100) / 255.0);
}

TEST_CASE("CIFAR-10: files that are not right are refused in one line") {
  const TempFolder f;
  CHECK_THROWS_WITH(load(f), Contains("data_batch_1.bin: not found: CIFAR-10's binary version is at https://"));
  Raw labelled;
  add_record(labelled, 3, 0), add_record(labelled, 10, 0);
  const std::tuple<const char*, Raw, const char*> wrong[] = {
      {"data_batch_3.bin", Raw(3073 + 100), "3173 bytes, expected a whole number of records of 3073"},
      {"test_batch.bin", {}, "0 bytes"},
      {"data_batch_5.bin", labelled, "label 10 of image 1, expected below 10"}};
  for (const auto& [file, bytes, says] : wrong) {
    write_set(f);
    write_bytes(f / file, bytes);
    CHECK_THROWS_WITH(load(f), Contains(text(file, ": ", says)));
  }
  write_set(f);
  std::filesystem::remove(f / "data_batch_4.bin");
  CHECK_THROWS_WITH(load(f), Contains("data_batch_4.bin: not found"));
}
