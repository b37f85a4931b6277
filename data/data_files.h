// Which files --data may mean, whichever model reads them: what has to be kept from being overwritten.
#pragma once

#include <string>
#include <vector>

namespace isonorm::data {

// The file `data` itself, and the files that sets of images and pairs read in the folder `data`: of an ImageFolder all files below
// its parts, read or not; of the other sets all spellings, there or not. Empty: the folder that images are read from by default.
std::vector<std::string> data_files(const std::string& data);

}  // namespace isonorm::data
