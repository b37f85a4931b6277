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
std::vector<std::string> classes_in(const std::string& dir) {
  std::vector<std::string> all;
  for (const fs::directory_entry& e : fs::directory_iterator(dir))
    if (const std::string name = e.path().filename().string(); e.is_directory() && !name.starts_with('.'))
      all.push_back(name);
  std::ranges::sort(all);
  return all;
}

// The files below a folder, through links, too. A link may lead to a folder that the walk is in. Without the list of
// these folders a walk through two such links would take 2^40 steps until the system refuses the path.
class Walk {
 public:
  // failed(error): gets what cannot be read, a std::filesystem_error that names it; it may throw.
  using Failed = void (*)(const fs::filesystem_error&);
  Walk(const std::string& dir, Failed failed) : failed_(failed) {
    std::error_code error;
    const fs::path whole = fs::canonical(dir, error);
    for (fs::path above = whole; above.has_relative_path();) inside_.push_back(above = above.parent_path());
    enter(dir);
    std::ranges::sort(files_);
  }
  std::vector<std::string> files() && { return std::move(files_); }  // in order

 private:
  void enter(const fs::path& dir) {
    std::error_code error;
    for (const fs::path& other : inside_)
      if (fs::equivalent(dir, other, error)) return;
    inside_.push_back(dir);
    fs::directory_iterator at(dir, error);
    for (; !error && at != fs::directory_iterator(); at.increment(error)) {
      std::error_code unknown;
      const fs::file_type type = at->status(unknown).type();
      if (type == fs::file_type::none) failed_({"status", at->path(), unknown});
      if (type == fs::file_type::directory) enter(at->path());
      if (type == fs::file_type::regular) files_.push_back(at->path().string());
    }
    if (error) failed_({"list", dir, error});
    inside_.pop_back();
  }

  Failed failed_;
  std::vector<fs::path> inside_;  // the folders that the walk is in, and those above
  std::vector<std::string> files_;
};

// The pictures of a part. not_read: gets the others.
Part part_of(const std::string& dir, const std::vector<std::string>& classes, std::vector<std::string>& not_read) {
  Part all;
  for (const std::string& name : classes_in(dir)) {
    const auto at = std::ranges::find(classes, name);
    check(at != classes.end(), dir, ": ", name, " is no class of those to train on");
    for (const std::string& path : Walk(dir + "/" + name, [](const fs::filesystem_error& e) { throw e; }).files()) {
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

std::vector<std::string> ImageFolder::all_files(const std::string& dir) {
  std::vector<std::string> all;
  for (const char* part : {"/train", "/test", "/val"})
    for (std::string& file : Walk(dir + part, [](const fs::filesystem_error&) {}).files())
      all.push_back(std::move(file));
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
