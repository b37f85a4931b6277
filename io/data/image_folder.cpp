#include "io/data/image_folder.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <tuple>

#include "core/dims.h"
#include "core/error.h"
#include "core/system/parallel.h"
#include "core/system/warning.h"
#include "io/data/image_sets.h"
#include "io/data/part_folders.h"
#include "io/data/tensor_set.h"

namespace isonorm::data {
namespace {

namespace fs = std::filesystem;

struct Picture {
  std::string path;
  int64_t label;
};
using Part = std::vector<Picture>;

// The files below a folder, also through links. A link may lead back to a folder that the walk is in. Without the list
// of these folders, a walk through two such links would take 2^40 steps before the system refuses the path.
class Walk {
 public:
  // failed(error) is called for what cannot be read, with an error that names it; it may throw.
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
      if (is_hidden(at->path())) continue;
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
  std::vector<fs::path> inside_;  // the folders that the walk is in, and their parents
  std::vector<std::string> files_;
};

// The pictures of a part (training or test). Appends pictures of other formats to `not_read`.
Part part_of(const std::string& dir, const std::vector<std::string>& classes, std::vector<std::string>& not_read) {
  Part all;
  for (const std::string& name : folders_in(dir)) {
    const int64_t label = class_index(classes, name, dir);
    for (const std::string& path : Walk(dir + "/" + name, [](const fs::filesystem_error& e) { throw e; }).files()) {
      if (is_read_picture(path)) all.push_back({path, label});
      if (is_other_picture(path)) not_read.push_back(path);
    }
  }
  return all;
}

// Chooses the test pictures of a class of n pictures: at random, but always the same for the same n.
std::vector<bool> drawn_for_tests(int64_t n, double share) {
  const auto wanted = static_cast<int64_t>(std::ceil(share * static_cast<double>(n) - 1e-9));
  const int64_t count = share == 1 ? n : std::min(n - 1, wanted);
  std::vector<bool> drawn(static_cast<size_t>(n));
  const std::vector<std::vector<int64_t>> parts = random_parts(n, std::vector{count, n - count}, 0);
  for (const int64_t i : parts[0]) drawn[static_cast<size_t>(i)] = true;
  return drawn;
}

// Splits the pictures of each class into training and test pictures.
std::pair<Part, Part> split(const Part& all, double held_out) {
  std::pair<Part, Part> parts;  // training, test
  for (auto begin = all.begin(); begin != all.end();) {
    const auto end = std::find_if(begin, all.end(), [&](const Picture& p) { return p.label != begin->label; });
    const std::vector<bool> drawn = drawn_for_tests(end - begin, held_out);
    for (auto p = begin; p != end; ++p)
      (drawn[static_cast<size_t>(p - begin)] ? parts.second : parts.first).push_back(*p);
    begin = end;
  }
  return parts;
}

// Returns read(). Errors of the file system become io errors that name the path.
template <class Read> auto from_files(const Read& read) {
  try {
    return read();
  } catch (const fs::filesystem_error& e) {
    check_io(false, e.path1().string(), ": ", e.code().message());
    throw;
  }
}

struct Found {
  std::vector<std::string> classes;
  Part train, test;
  std::vector<std::string> not_read;  // pictures of other formats
  std::vector<std::string> tests;     // the test folders; only the first one is read
};

Found find(const std::string& dir, const ImageFolderOptions& o) {
  const PartFolders parts = parts_of(dir);
  const std::vector<std::string> folders = parts.read(), own = folders_in(folders[0]);
  check(!own.empty(), folders[0], ": has no folders, expected one for each class");
  check_classes(folders[0]);
  Found found;
  found.classes = o.classes.empty() ? own : o.classes;
  found.tests = parts.tests;
  if (!parts.train.empty()) found.train = part_of(parts.train, found.classes, found.not_read);
  for (size_t i = 0; o.classes.empty() && !parts.train.empty() && i < own.size(); ++i)
    check(std::ranges::any_of(found.train, [&](const Picture& p) { return p.label == static_cast<int64_t>(i); }),
          parts.train, "/", own[i], ": has no .png, .jpg or .jpeg file");
  const std::string& tested = folders.back();
  if (parts.tests.empty())
    std::tie(found.train, found.test) = split(found.train, o.held_out);
  else
    found.test = part_of(tested, found.classes, found.not_read);
  check(!found.train.empty() || !found.test.empty(), tested,
        ": has no .png, .jpg or .jpeg file in a folder of a class");
  check(parts.tests.empty() || !found.test.empty(), tested, ": has no .png, .jpg or .jpeg file in a folder of a class");
  return found;
}

// Counts the pictures whose decoder warned, and keeps the first warning in the order of the files.
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

LabelledImages read_part(const Part& part, const ImageFolderOptions& o, DamagedPictures& damaged) {
  const int64_t n = std::ssize(part), side = o.side,
                size = checked_mul(checked_mul(side, side, "image folder: side"), 3, "image folder");
  checked_mul(n, size, "image folder: images");
  const LabelledImages set{empty({n, side, side, 3}, {DType::u8}), empty({n}, {DType::i64})};
  uint8_t* const pixels = set.images.mutable_data<uint8_t>();
  int64_t* const labels = set.labels.mutable_data<int64_t>();
  parallel_for(n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Picture& picture = part[static_cast<size_t>(i)];
      std::string warning;
      const Tensor square = square_of(read_picture(picture.path, &warning), side, o.fit);
      if (!warning.empty()) damaged.add(picture.path, warning);
      std::copy_n(square.data<uint8_t>(), size, pixels + i * size);
      labels[i] = picture.label;
    }
  });
  return set;
}

}  // namespace

bool is_picture(const std::string& path) { return is_read_picture(path) || is_other_picture(path); }

bool ImageFolder::is_in(const std::string& dir) {
  constexpr auto kHow = fs::directory_options::follow_directory_symlink | fs::directory_options::skip_permission_denied;
  std::error_code error;
  fs::recursive_directory_iterator at(dir, kHow, error);
  for (int left = kMostEntries; !error && left > 0 && at != fs::recursive_directory_iterator(); --left) {
    std::error_code unknown;
    const bool picture = at.depth() > 0 && is_read_picture(at->path().string()) && at->is_regular_file(unknown);
    if (picture && !is_hidden(at->path())) return true;
    if (is_hidden(at->path())) at.disable_recursion_pending();
    at.increment(error);
  }
  return false;
}

std::string ImageFolder::why_not(const std::string& dir) {
  int64_t read = 0, other = 0;
  std::string first;
  std::error_code error;
  fs::recursive_directory_iterator at(dir, fs::directory_options::skip_permission_denied, error);
  for (int left = kMostEntries; !error && left > 0 && at != fs::recursive_directory_iterator(); --left) {
    const std::string path = at->path().string();
    if (is_other_picture(path) && other++ == 0) first = path;
    read += is_read_picture(path);
    at.increment(error);
  }
  if (read > 0) return text(read, read == 1 ? " picture is" : " pictures are", " in no folder of a class");
  if (other == 0) return "no images are found there";
  return text(other, other == 1 ? " picture has" : " pictures have", " a format that is not read; the first is ",
              first);
}

bool ImageFolder::has_own_tests(const std::string& dir) {
  return from_files([&] { return !parts_of(dir).tests.empty(); });
}

std::string ImageFolder::class_counts(const std::string& dir) {
  const std::vector<std::string> names = class_names(dir);
  std::vector<int64_t> counts(names.size());
  std::vector<std::string> not_read;
  for (const Picture& p : from_files([&] { return part_of(parts_of(dir).train, names, not_read); }))
    ++counts[static_cast<size_t>(p.label)];
  std::string lines;
  for (size_t i = 0; i < names.size(); ++i) lines += text(names[i], ' ', counts[i], '\n');
  return lines;
}

std::vector<std::string> ImageFolder::class_names(const std::string& dir) {
  return from_files([&] { return folders_in(parts_of(dir).read()[0]); });
}

std::vector<std::string> ImageFolder::files(const std::string& dir) {
  return from_files([&] {
    std::vector<std::string> all, not_read;
    for (const std::string& part : parts_of(dir).read())
      for (const Picture& p : part_of(part, folders_in(part), not_read)) all.push_back(p.path);
    return all;
  });
}

std::vector<std::string> ImageFolder::all_files(const std::string& dir) try {
  const PartFolders parts = parts_of(dir);
  std::vector<std::string> all, folders = parts.tests;
  if (parts.train == dir)
    for (const std::string& name : folders_in(dir)) folders.push_back(dir + "/" + name);
  else if (!parts.train.empty())
    folders.push_back(parts.train);
  for (const std::string& folder : folders)
    for (std::string& file : Walk(folder, [](const fs::filesystem_error&) {}).files()) all.push_back(std::move(file));
  return all;
} catch (const fs::filesystem_error&) {
  return {};
}

ImageFolder ImageFolder::load(const std::string& dir, const ImageFolderOptions& o) {
  check(o.side > 0, dir, ": a side of ", o.side, " pixels");
  check(o.held_out >= 0 && o.held_out <= 1, dir, ": held out is the share ", o.held_out, ", expected 0 to 1");
  const Found found = from_files([&] { return find(dir, o); });
  if (found.tests.size() > 1) warn(text(found.tests[1], " is not read: tests are on ", found.tests[0]));
  if (!found.not_read.empty())
    warn(text(found.not_read.size(), found.not_read.size() == 1 ? " picture is" : " pictures are",
              " left out, expected .png, .jpg or .jpeg; the first is ", found.not_read.front()));
  DamagedPictures damaged;
  ImageFolder set{read_part(o.tests_only ? Part() : found.train, o, damaged), read_part(found.test, o, damaged),
                  found.classes};
  damaged.report();
  return set;
}

}  // namespace isonorm::data
