// Which files --data may mean, whichever model reads them: what has to be kept from being overwritten.
#pragma once

#include <string>
#include <vector>

namespace isonorm::data {

// The file `data` itself, or what sets of images and pairs read in the folder `data`, in all their spellings, there or
// not. Of an empty name, the folder that images are read from without one.
std::vector<std::string> data_files(const std::string& data);

}  // namespace isonorm::data
