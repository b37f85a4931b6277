// Internal: which folders of a data set of pictures are for training and for tests, and which are classes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace isonorm::data {

// .ipynb_checkpoints, ._1.png, __MACOSX: copies that other programs leave behind.
bool is_hidden(const std::filesystem::path& path);
// True if the file's extension belongs to a format that is read; and to one that is not (.bmp, .gif, .webp, ...).
bool is_read_picture(const std::string& path);
bool is_other_picture(const std::string& path);

// The folders in `dir` that are not hidden, in ascending order. Throws std::filesystem_error, which names the path.
std::vector<std::string> folders_in(const std::string& dir);

// The folders that hold folders of classes.
struct PartFolders {
  std::string train;               // empty: nothing to train on
  std::vector<std::string> tests;  // of which the first one is read; empty: `train` is split

  std::vector<std::string> read() const;  // the one to train on first
};
// As ImageFolder::load() says. Throws as folders_in().
PartFolders parts_of(const std::string& dir);

// Throws if the folders in `dir` are no classes but parts of a data set: each of them holds only folders, some of the same name.
void check_classes(const std::string& dir);

}  // namespace isonorm::data
