#include "data/fashion_mnist.h"

#include "core/file.h"
#include "data/idx.h"

namespace isonorm::data {
namespace {

Tensor read(const std::string& dir, const std::string& name) {
  const std::string path = dir + "/" + name;
  if (file_exists(path + ".gz")) return read_idx(path + ".gz");
  check_io(
      file_exists(path), path,
      ".gz: not found: install the Debian package dataset-fashion-mnist, or pass --data DIR with the four idx files");
  return read_idx(path);
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
  const Tensor images = read(dir, prefix + "-images-idx3-ubyte");
  const Tensor labels = to_labels(read(dir, prefix + "-labels-idx1-ubyte"), where);
  check(images.rank() == 3 && images.size(1) == 28 && images.size(2) == 28 && images.size(0) > 0, where,
        ": images have shape ", images.shape(), ", expected [n, 28, 28]");
  check(images.size(0) == labels.size(0), where, ": ", images.size(0), " images but ", labels.size(0), " labels");
  return {images, labels};
}

}  // namespace

FashionMnist FashionMnist::load(const std::string& dir) {
  const std::string folder = dir.empty() ? kFashionMnistDir : dir;
  return {load_split(folder, "train"), load_split(folder, "t10k")};
}

}  // namespace isonorm::data
