// The files that --data may read, for any model. They must not be overwritten.
#pragma once

#include <string>
#include <vector>

namespace isonorm::data {

// The file `data` itself, and the files that image sets and pairs read from the folder `data`. An ImageFolder has all
// files below its folders, whether they are read or not; for other sets all names that they look for, whether they
// exist or not. Empty `data`: the default folder of images.
std::vector<std::string> data_files(const std::string& data);

}  // namespace isonorm::data
