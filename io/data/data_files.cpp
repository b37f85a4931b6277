#include "io/data/data_files.h"

#include "io/data/image_folder.h"
#include "io/data/image_sets.h"
#include "io/data/pairs.h"
#include "io/data/published_sets.h"

namespace isonorm::data {

std::vector<std::string> data_files(const std::string& data) {
  const std::string folder = image_folder(data);
  std::vector<std::string> files = Pairs::files(folder);
  if (!data.empty()) files.push_back(data);
  for (const std::string& name : Cifar10::names()) files.push_back(folder + "/" + name);
  for (const std::string& name : FashionMnist::names())
    for (const char* end : {"", ".gz"}) files.push_back(folder + "/" + name + end);
  if (!data.empty() && ImageFolder::is_in(folder))  // without a name the folder is Fashion-MNIST's
    for (std::string& file : ImageFolder::all_files(folder)) files.push_back(std::move(file));
  return files;
}

}  // namespace isonorm::data
