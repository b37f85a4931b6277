#include "data/data_files.h"

#include <filesystem>

#include "data/cifar10.h"
#include "data/fashion_mnist.h"
#include "data/image_folder.h"
#include "data/image_sets.h"
#include "data/pairs.h"

namespace isonorm::data {

namespace fs = std::filesystem;

namespace {

// A folder that cannot be listed gives no files. ImageFolder::load() reports it, if the folder is read.
void add_files_below(const std::string& folder, std::vector<std::string>& files) {
  std::error_code failed;
  for (fs::recursive_directory_iterator at(folder, fs::directory_options::follow_directory_symlink, failed), end;
       !failed && at != end; at.increment(failed))
    if (std::error_code none; at->is_regular_file(none)) files.push_back(at->path().string());
}

}  // namespace

std::vector<std::string> data_files(const std::string& data) {
  const std::string folder = image_folder(data);
  std::vector<std::string> files = Pairs::files(folder);
  if (!data.empty()) files.push_back(data);
  for (const std::string& name : Cifar10::names()) files.push_back(folder + "/" + name);
  for (const std::string& name : FashionMnist::names())
    for (const char* end : {"", ".gz"}) files.push_back(folder + "/" + name + end);
  if (ImageFolder::is_in(folder))
    for (const char* part : {"train", "test", "val"}) add_files_below(folder + "/" + part, files);
  return files;
}

}  // namespace isonorm::data
