#include "io/data/part_folders.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include "core/error.h"
#include "core/system/foreign_text.h"

namespace isonorm::data {
namespace {

namespace fs = std::filesystem;

// Names of part folders, in any case.
constexpr std::string_view kTrainFolders[] = {"train", "training", "training_set"};
constexpr std::string_view kTestFolders[] = {"test", "testing", "test_set", "val", "valid", "validation", "dev"};
constexpr std::string_view kRead[] = {".png", ".jpg", ".jpeg"};
constexpr std::string_view kNotRead[] = {".bmp", ".gif",  ".pgm", ".ppm",
                                         ".tif", ".tiff", ".webp"};  // torchvision reads most formats in this list

std::string lower(std::string s) {
  std::ranges::transform(s, s.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return s;
}

bool ends_with_one_of(const std::string& path, std::span<const std::string_view> ends) {
  return std::ranges::count(ends, lower(fs::path(path).extension().string())) > 0;
}

// The direct entries of a folder: the names of its folders, and whether it contains a picture.
struct Listing {
  std::set<std::string> folders;
  bool has_pictures = false;
};
Listing listing_of(const std::string& dir) {
  Listing found;
  for (const fs::directory_entry& e : fs::directory_iterator(dir)) {
    if (is_hidden(e.path())) continue;
    if (e.is_directory()) found.folders.insert(e.path().filename().string());
    found.has_pictures = found.has_pictures || is_read_picture(e.path().string());
  }
  return found;
}

// The folders in `dir` whose name is in `names`, in the order of `names`. A folder that contains a picture is a class,
// not a part.
std::vector<std::string> parts_named(const std::string& dir, std::span<const std::string_view> names) {
  std::vector<std::string> found;
  const std::vector<std::string> folders = folders_in(dir);
  for (const std::string_view name : names)
    for (const std::string& folder : folders)
      if (lower(folder) == name && !listing_of(dir + "/" + folder).has_pictures) found.push_back(dir + "/" + folder);
  return found;
}

}  // namespace

bool is_hidden(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with('.') || name == "__MACOSX";
}

bool is_read_picture(const std::string& path) { return ends_with_one_of(path, kRead); }
bool is_other_picture(const std::string& path) { return ends_with_one_of(path, kNotRead); }

std::vector<std::string> folders_in(const std::string& dir) {
  std::vector<std::string> all;
  for (const fs::directory_entry& e : fs::directory_iterator(dir))
    if (e.is_directory() && !is_hidden(e.path())) all.push_back(e.path().filename().string());
  std::ranges::sort(all);
  return all;
}

std::vector<std::string> PartFolders::read() const {
  std::vector<std::string> folders;
  if (!train.empty()) folders.push_back(train);
  if (!tests.empty()) folders.push_back(tests[0]);
  return folders;
}

PartFolders parts_of(const std::string& dir) {
  const std::vector<std::string> train = parts_named(dir, kTrainFolders), tests = parts_named(dir, kTestFolders);
  if (!train.empty()) return {train[0], tests};
  return !tests.empty() && tests.size() == folders_in(dir).size() ? PartFolders{"", tests} : PartFolders{dir, {}};
}

void check_classes(const std::string& dir) {
  std::map<std::string, std::string> seen;  // folder name -> the folder of `dir` that contains it
  ShortList twice;
  std::string first, second;
  for (const std::string& folder : folders_in(dir)) {
    const Listing in = listing_of(dir + "/" + folder);
    if (in.has_pictures) return;
    for (const std::string& name : in.folders)
      if (const auto [at, is_new] = seen.emplace(name, folder); !is_new)
        twice.add(Shown{name}), first = at->second, second = folder;
  }
  check(twice.empty(), dir, ": both ", Shown{first}, " and ", Shown{second}, " have folders ", twice,
        ", so they are not classes; give one as the data and the other as the test data");
}

}  // namespace isonorm::data
