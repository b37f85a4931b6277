#include "io/data/published_sets.h"

#include "core/system/file.h"

namespace isonorm::data {
namespace {

constexpr const char* kImages = "-images-idx3-ubyte";
constexpr const char* kLabels = "-labels-idx1-ubyte";

std::string folder_of(const std::string& dir) { return dir.empty() ? kFashionMnistDir : dir; }

// The file with this name, compressed or not.
std::string find(const std::string& dir, const std::string& name) {
  const std::string path = dir + "/" + name;
  if (file_exists(path + ".gz")) return path + ".gz";
  check_io(
      file_exists(path), path,
      ".gz: not found: install the Debian package dataset-fashion-mnist, or pass --data DIR with the four idx files");
  return path;
}

Tensor to_labels(const Tensor& bytes, const std::string& where) {
  check(bytes.rank() == 1, where, ": labels have shape ", bytes.shape(), ", expected rank 1");
  Tensor labels = empty(bytes.shape(), {DType::i64});
  const uint8_t* from = bytes.data<uint8_t>();
  int64_t* to = labels.mutable_data<int64_t>();
  for (int64_t i = 0; i < bytes.numel(); ++i) {
    check(from[i] < FashionMnist::kClasses, where, ": label ", from[i], " of image ", i, ", expected below ",
          FashionMnist::kClasses);
    to[i] = from[i];
  }
  return labels;
}

LabelledImages load_split(const std::string& dir, const std::string& prefix) {
  const std::string where = dir + "/" + prefix;
  const Tensor images = read_idx(find(dir, prefix + kImages));
  const Tensor labels = to_labels(read_idx(find(dir, prefix + kLabels)), where);
  check(images.rank() == 3 && images.size(1) == 28 && images.size(2) == 28 && images.size(0) > 0, where,
        ": images have shape ", images.shape(), ", expected [n, 28, 28]");
  check(images.size(0) == labels.size(0), where, ": ", images.size(0), " images but ", labels.size(0), " labels");
  return {images, labels};
}

}  // namespace

FashionMnist FashionMnist::load(const std::string& dir) {
  const std::string folder = folder_of(dir);
  return {load_split(folder, "train"), load_split(folder, "t10k")};
}

bool FashionMnist::is_in(const std::string& dir) {
  const std::string images = folder_of(dir) + "/train" + kImages;
  return file_exists(images) || file_exists(images + ".gz");
}

std::vector<std::string> FashionMnist::names() {
  std::vector<std::string> all;
  for (const char* prefix : {"train", "t10k"})
    for (const char* kind : {kImages, kLabels}) all.push_back(std::string(prefix) + kind);
  return all;
}

std::vector<std::string> FashionMnist::files(const std::string& dir) {
  std::vector<std::string> paths;
  for (const std::string& name : names()) paths.push_back(find(folder_of(dir), name));
  return paths;
}

}  // namespace isonorm::data
