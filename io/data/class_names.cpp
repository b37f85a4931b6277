#include "io/data/class_names.h"

#include <algorithm>
#include <filesystem>

#include "core/system/foreign_text.h"
#include "io/data/cifar10.h"

namespace isonorm::data {
namespace {

// torchvision.datasets.FashionMNIST.classes and CIFAR10.classes.
const std::vector<std::string> kClothes = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                           "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
const std::vector<std::string> kAnimalsAndVehicles = {"airplane", "automobile", "bird",  "cat",  "deer",
                                                      "dog",      "frog",       "horse", "ship", "truck"};
const std::vector<std::string> kDigitNames = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};

// "fashion-mnist", "FashionMNIST": only the letters, in lower case.
std::string letters_of(const std::filesystem::path& name) {
  std::string letters;
  for (const unsigned char c : name.string())
    if (std::isalpha(c)) letters += static_cast<char>(std::tolower(c));
  return letters;
}

}  // namespace

std::vector<std::string> published_classes(const std::string& dir) {
  if (Cifar10::is_in(dir)) return kAnimalsAndVehicles;
  std::filesystem::path path = std::filesystem::absolute(dir + "/.").lexically_normal().parent_path();
  if (path.filename() == "raw") path = path.parent_path();  // torchvision's files are in FashionMNIST/raw
  const std::string name = letters_of(path.filename());
  return name == "fashionmnist" ? kClothes : name == "mnist" ? kDigitNames : std::vector<std::string>();
}

int64_t class_index(const std::vector<std::string>& classes, const std::string& name, const std::string& place) {
  const auto at = std::ranges::find(classes, name);
  check(at != classes.end(), place, ": ", Shown{name}, " is none of the classes ", class_list(classes));
  check(std::find(at + 1, classes.end(), name) == classes.end(), place, ": ", Shown{name},
        " is the name of two classes");
  return at - classes.begin();
}

std::string class_list(const std::vector<std::string>& classes) {
  ShortList names;
  for (const std::string& name : classes) names.add(printable(name, 80));
  return names.str();
}

}  // namespace isonorm::data
