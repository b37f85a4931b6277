#include "data/image_sets.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/error.h"
#include "data/cifar10.h"
#include "data/fashion_mnist.h"
#include "data/image_folder.h"

namespace isonorm::data {
namespace {

namespace fs = std::filesystem;

std::string from_environment(const char* name, const char* behind = "") {
  const char* value = std::getenv(name);
  return value && *value ? text(value, behind) : "";
}

template <class Set> ImageSets sets_of(Set set, int64_t classes) {
  return {std::move(set.train), std::move(set.test), classes};
}

// The folder that these data are read from. Throws if a folder that was named holds no set.
std::string found_folder(const std::string& data) {
  if (data.empty()) return image_folder(data);  // FashionMnist says which package has it
  check_io(fs::exists(image_folder(data)), data, ": there is no such folder");
  check_io(holds_images(data), data, ": ",
           fs::is_directory(data) ? "no images are found there" : "it is a file, not a folder of images",
           "; expected the four idx files of MNIST or Fashion-MNIST, the six .bin files of CIFAR-10, or pictures, "
           "train/CLASS/*.png");
  return image_folder(data);
}

}  // namespace

std::string image_folder(const std::string& data) {
  if (data.empty()) return kFashionMnistDir;
  if (fs::exists(data) || (data != "mnist" && data != "fashion_mnist" && data != "cifar10")) return data;
  std::string looked;
  for (const std::string& dir : {from_environment("ISONORM_DATA"), from_environment("HOME", "/.cache/isonorm"),
                                 std::string("/usr/share/datasets")}) {
    if (dir.empty()) continue;
    std::string dashed = data;
    std::ranges::replace(dashed, '_', '-');  // as Debian writes it
    for (const std::string& folder : {text(dir, "/", data), text(dir, "/", dashed)})
      if (fs::is_directory(folder)) return folder;
    looked += text(looked.empty() ? "" : ", ", dir);
  }
  check_io(false, data, ": there is no folder of that name here, or in ", looked);
  return data;
}

bool holds_images(const std::string& data) {
  const std::string dir = image_folder(data);
  return Cifar10::is_in(dir) || ImageFolder::is_in(dir) || FashionMnist::is_in(dir);
}

ImageSets load_images(const std::string& data, int64_t side) {
  const std::string dir = found_folder(data);
  if (Cifar10::is_in(dir)) return sets_of(Cifar10::load(dir), Cifar10::kClasses);
  if (!ImageFolder::is_in(dir)) return sets_of(FashionMnist::load(dir), FashionMnist::kClasses);
  ImageFolder set = ImageFolder::load(dir, side);
  const int64_t classes = std::ssize(set.classes);
  return sets_of(std::move(set), classes);
}

std::vector<std::string> image_files(const std::string& data) {
  const std::string dir = found_folder(data);
  if (Cifar10::is_in(dir)) return Cifar10::files(dir);
  return ImageFolder::is_in(dir) ? ImageFolder::files(dir) : FashionMnist::files(dir);
}

}  // namespace isonorm::data
