#include "io/data/published_sets.h"

#include "core/system/file.h"

namespace isonorm::data {
namespace {

constexpr int64_t kSide = 32, kColours = 3, kPlane = kSide * kSide, kRecord = 1 + kColours * kPlane;
constexpr int kTrainFiles = 5;
constexpr int64_t kMostBytes = int64_t{1} << 30;  // limit for a file, 35 times CIFAR-10's size

LabelledImages read(std::span<const std::string> paths) {
  std::vector<std::vector<uint8_t>> files;
  int64_t n = 0;
  for (const std::string& path : paths) {
    const Bytes file = open_bytes(path);
    check(file.size > 0 && file.size % kRecord == 0, path, ": ", file.size,
          " bytes, expected a whole number of records of ", kRecord);
    files.push_back(read_all(file, kMostBytes));
    n += file.size / kRecord;
  }
  LabelledImages set{empty({n, kSide, kSide, kColours}, {DType::u8}), empty({n}, {DType::i64})};
  uint8_t* pixel = set.images.mutable_data<uint8_t>();
  int64_t* label = set.labels.mutable_data<int64_t>();
  for (size_t f = 0; f < files.size(); ++f)
    for (size_t at = 0; at < files[f].size(); at += kRecord) {
      const uint8_t* record = &files[f][at];
      check(record[0] < Cifar10::kClasses, paths[f], ": label ", record[0], " of image ", at / kRecord,
            ", expected below ", Cifar10::kClasses);
      *label++ = record[0];
      for (int64_t p = 0; p < kPlane; ++p)
        for (int64_t c = 0; c < kColours; ++c) *pixel++ = record[1 + c * kPlane + p];
    }
  return set;
}

}  // namespace

bool Cifar10::is_in(const std::string& dir) { return !dir.empty() && file_exists(dir + "/data_batch_1.bin"); }

std::vector<std::string> Cifar10::names() {
  std::vector<std::string> all;
  for (int i = 1; i <= kTrainFiles; ++i) all.push_back(text("data_batch_", i, ".bin"));
  all.push_back("test_batch.bin");
  return all;
}

std::vector<std::string> Cifar10::files(const std::string& dir) {
  std::vector<std::string> paths;
  for (const std::string& name : names()) paths.push_back(text(dir, "/", name));
  for (const std::string& path : paths)
    check_io(
        file_exists(path), path,
        ": not found: CIFAR-10's binary version is at https://www.cs.toronto.edu/~kriz/cifar.html; pass --data DIR "
        "with its six .bin files");
  return paths;
}

Cifar10 Cifar10::load(const std::string& dir) {
  const std::vector<std::string> paths = files(dir);
  const std::span<const std::string> all(paths);
  return {read(all.first(kTrainFiles)), read(all.subspan(kTrainFiles))};
}

}  // namespace isonorm::data
