#include "data/image_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <mutex>
#include <span>
#include <string_view>

#include "core/dims.h"
#include "core/error.h"
#include "core/system/parallel.h"
#include "core/system/warning.h"
#include "data/picture.h"

namespace isonorm::data {
namespace {

namespace fs = std::filesystem;

struct Picture {
  std::string path;
  int64_t label;
};
using Part = std::vector<Picture>;

constexpr std::string_view kRead[] = {".png", ".jpg", ".jpeg"};
constexpr std::string_view kNotRead[] = {".bmp", ".gif",  ".pgm", ".ppm",
                                         ".tif", ".tiff", ".webp"};  // torchvision reads most formats in this list

bool ends_with_one_of(const std::string& path, std::span<const std::string_view> ends) {
  std::string end = fs::path(path).extension().string();
  std::ranges::transform(end, end.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::count(ends, end) > 0;
}

// In order. A folder that cannot be read throws std::filesystem_error, which names it.
template <class Iterator, class Keep> std::vector<std::string> sorted(const std::string& dir, const Keep& keep) {
  std::vector<std::string> all;
  for (const fs::directory_entry& e : Iterator(dir, fs::directory_options::follow_directory_symlink))
    if (keep(e)) all.push_back(e.path().string());
  std::ranges::sort(all);
  return all;
}

std::vector<std::string> classes_in(const std::string& dir) {
  std::vector<std::string> all =
      sorted<fs::directory_iterator>(dir, [](const fs::directory_entry& e) { return e.is_directory(); });
  for (std::string& path : all) path = fs::path(path).filename().string();
  std::erase_if(all, [](const std::string& name) { return name.starts_with('.'); });
  return all;
}

// The pictures of a part. not_read: gets the others.
Part part_of(const std::string& dir, const std::vector<std::string>& classes, std::vector<std::string>& not_read) {
  Part all;
  for (const std::string& name : classes_in(dir)) {
    const auto at = std::ranges::find(classes, name);
    check(at != classes.end(), dir, ": ", name, " is no class of those to train on");
    for (const std::string& path : sorted<fs::recursive_directory_iterator>(
             dir + "/" + name, [](const fs::directory_entry& e) { return e.is_regular_file(); })) {
      if (ends_with_one_of(path, kRead)) all.push_back({path, at - classes.begin()});
      if (ends_with_one_of(path, kNotRead)) not_read.push_back(path);
    }
  }
  return all;
}

struct Found {
  std::vector<std::string> classes;
  std::array<Part, 2> parts;          // to train on, to test on
  std::vector<std::string> not_read;  // pictures of other formats
};

Found find(const std::string& dir) {
  const std::string train = dir + "/train", test = dir + (fs::is_directory(dir + "/test") ? "/test" : "/val");
  for (const std::string& part : {train, test}) check_io(fs::is_directory(part), part, ": there is no such folder");
  try {
    const std::vector<std::string> classes = classes_in(train);
    Found found;
    found.classes = classes;
    found.parts = {part_of(train, classes, found.not_read), part_of(test, classes, found.not_read)};
    check(!classes.empty(), train, ": has no folders, expected one a class");
    for (size_t i = 0; i < classes.size(); ++i)
      check(std::ranges::any_of(found.parts[0], [&](const Picture& p) { return p.label == static_cast<int64_t>(i); }),
            train, "/", classes[i], ": has no .png, .jpg or .jpeg file");
    check(!found.parts[1].empty(), test, ": has no .png, .jpg or .jpeg file in a folder of a class");
    return found;
  } catch (const fs::filesystem_error& e) {
    check_io(false, e.path1().string(), ": ", e.code().message());
    throw;
  }
}

// Counts the pictures whose decoder has warned, and keeps the first in the order of the files.
class DamagedPictures {
 public:
  void add(const std::string& path, const std::string& warning) {
    const std::lock_guard lock(mutex_);
    if (count_++ == 0 || path < path_) path_ = path, warning_ = warning;
  }
  void report() const {
    if (count_ > 0)
      warn(text(count_, count_ == 1 ? " damaged picture is" : " damaged pictures are",
                " read as far as possible; the first is ", path_, ": ", warning_));
  }

 private:
  std::mutex mutex_;
  int64_t count_ = 0;
  std::string path_, warning_;
};

LabelledImages read_part(const Part& part, int64_t side, DamagedPictures& damaged) {
  const int64_t n = std::ssize(part),
                size = checked_mul(checked_mul(side, side, "image folder: side"), 3, "image folder");
  checked_mul(n, size, "image folder: images");
  const LabelledImages set{empty({n, side, side, 3}, {DType::u8}), empty({n}, {DType::i64})};
  uint8_t* const pixels = set.images.mutable_data<uint8_t>();
  int64_t* const labels = set.labels.mutable_data<int64_t>();
  parallel_for(n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Picture& picture = part[static_cast<size_t>(i)];
      std::string warning;
      const Tensor square = square_of(read_picture(picture.path, &warning), side);
      if (!warning.empty()) damaged.add(picture.path, warning);
      std::copy_n(square.data<uint8_t>(), size, pixels + i * size);
      labels[i] = picture.label;
    }
  });
  return set;
}

}  // namespace

bool ImageFolder::is_in(const std::string& dir) { return !dir.empty() && fs::is_directory(dir + "/train"); }

std::vector<std::string> ImageFolder::files(const std::string& dir) {
  std::vector<std::string> all;
  for (const Part& part : find(dir).parts)
    for (const Picture& p : part) all.push_back(p.path);
  return all;
}

ImageFolder ImageFolder::load(const std::string& dir, int64_t side) {
  check(side > 0, dir, ": a side of ", side, " pixels");
  const Found found = find(dir);
  if (!found.not_read.empty())
    warn(text(found.not_read.size(), found.not_read.size() == 1 ? " picture is" : " pictures are",
              " left out, expected .png, .jpg or .jpeg; the first is ", found.not_read.front()));
  DamagedPictures damaged;
  ImageFolder set{read_part(found.parts[0], side, damaged), read_part(found.parts[1], side, damaged), found.classes};
  damaged.report();
  return set;
}

}  // namespace isonorm::data
