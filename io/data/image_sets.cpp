#include "io/data/image_sets.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/error.h"
#include "core/system/foreign_text.h"
#include "io/data/pairs.h"
#include "io/data/published_sets.h"

namespace isonorm::data {

namespace {

namespace fs = std::filesystem;

std::string from_environment(const char* name, const char* behind = "") {
  const char* value = std::getenv(name);
  return value && *value ? text(value, behind) : "";
}

// Replaces each label by the index in `to` of its class name; `from` has the names of the set's labels.
Tensor renamed(const LabelledImages& set, const std::string& dir, const std::vector<std::string>& from,
               const std::vector<std::string>& to) {
  std::vector<int64_t> labels = set.labels.to_vector<int64_t>();
  std::vector<int64_t> place(from.size(), -1);  // new label of each old one; -1: not looked up yet
  for (int64_t& label : labels) {
    const auto i = static_cast<size_t>(label);
    label = place[i] = place[i] < 0 ? class_index(to, from[i], dir) : place[i];
  }
  return from_vector(labels, set.labels.shape());
}

template <class Set> ImageSets published(Set set, const std::string& dir, const std::vector<std::string>& classes) {
  ImageSets sets{std::move(set.train), std::move(set.test), Set::kClasses, published_classes(dir)};
  if (!sets.names.empty() && !classes.empty() && sets.names != classes) {
    for (LabelledImages* part : {&sets.train, &sets.test}) part->labels = renamed(*part, dir, sets.names, classes);
    sets.names = classes, sets.classes = std::ssize(classes);
  }
  return sets;
}

// The folder of the data files. Throws if a named folder holds no image set.
std::string found_folder(const std::string& data) {
  if (data.empty()) return image_folder(data);  // FashionMnist's error names the package
  check_io(fs::exists(image_folder(data)), data, ": there is no such folder");
  check_io(holds_images(data), data, ": ",
           fs::is_directory(data) ? ImageFolder::why_not(data) : "it is a file, not a folder of images",
           "; expected the four idx files of MNIST or Fashion-MNIST, the six .bin files of CIFAR-10, or pictures, "
           "CLASS/*.png or train/CLASS/*.png");
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
    std::ranges::replace(dashed, '_', '-');  // Debian's spelling
    for (const std::string& folder : {text(dir, "/", data), text(dir, "/", dashed)})
      if (fs::is_directory(folder)) return folder;
    looked += text(looked.empty() ? "" : ", ", dir);
  }
  check_io(false, data, ": there is no folder of that name here, or in ", looked);
  return data;
}

bool holds_images(const std::string& data) {
  const std::string dir = image_folder(data);
  return Cifar10::is_in(dir) || FashionMnist::is_in(dir) || ImageFolder::is_in(dir);
}

ImageSets load_images(const std::string& data, const ImageFolderOptions& options) {
  const std::string dir = found_folder(data);
  if (Cifar10::is_in(dir)) return published(Cifar10::load(dir), dir, options.classes);
  if (FashionMnist::is_in(dir)) return published(FashionMnist::load(dir), dir, options.classes);
  ImageFolder set = ImageFolder::load(dir, options);
  return {std::move(set.train), std::move(set.test), std::ssize(set.classes), std::move(set.classes)};
}

std::vector<std::string> class_names(const std::string& data) {
  const std::string dir = found_folder(data);
  return Cifar10::is_in(dir) || FashionMnist::is_in(dir) ? published_classes(dir) : ImageFolder::class_names(dir);
}

bool has_own_tests(const std::string& data) {
  const std::string dir = found_folder(data);
  return Cifar10::is_in(dir) || FashionMnist::is_in(dir) || ImageFolder::has_own_tests(dir);
}

std::string class_counts(const std::string& data) {
  return has_own_tests(data) ? "" : ImageFolder::class_counts(found_folder(data));
}

std::vector<std::string> image_files(const std::string& data) {
  const std::string dir = found_folder(data);
  if (Cifar10::is_in(dir)) return Cifar10::files(dir);
  return FashionMnist::is_in(dir) ? FashionMnist::files(dir) : ImageFolder::files(dir);
}

std::vector<std::string> data_files(const std::string& data) {
  const std::string folder = image_folder(data);
  std::vector<std::string> files = Pairs::files(folder);
  if (!data.empty()) files.push_back(data);
  for (const std::string& name : Cifar10::names()) files.push_back(folder + "/" + name);
  for (const std::string& name : FashionMnist::names())
    for (const char* end : {"", ".gz"}) files.push_back(folder + "/" + name + end);
  if (!data.empty() && ImageFolder::is_in(folder))  // an empty name means Fashion-MNIST
    for (std::string& file : ImageFolder::all_files(folder)) files.push_back(std::move(file));
  return files;
}

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
