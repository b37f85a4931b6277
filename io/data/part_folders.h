// Internal: which folders of a data set of pictures are training and test sets, and which are classes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace isonorm::data {

// .ipynb_checkpoints, ._1.png, __MACOSX: copies that other programs left there.
bool is_hidden(const std::filesystem::path& path);
// True if the file's extension is a picture format that is read; and one that is not read (.bmp, .gif, .webp, ...).
bool is_read_picture(const std::string& path);
bool is_other_picture(const std::string& path);

// The folders in `dir` that are not hidden, in ascending order. Throws std::filesystem_error, which names the path.
std::vector<std::string> folders_in(const std::string& dir);

// The folders that contain the class folders.
struct PartFolders {
  std::string train;               // empty: no training pictures
  std::vector<std::string> tests;  // only the first one is read; empty: `train` is split

  std::vector<std::string> read() const;  // the folders that are read, `train` first
};
// Finds the parts as ImageFolder::load() says. Throws as folders_in().
PartFolders parts_of(const std::string& dir);

// Throws if the folders in `dir` are parts of a data set instead of classes: each contains only folders, some with the
// same names.
void check_classes(const std::string& dir);

}  // namespace isonorm::data
