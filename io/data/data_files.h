// The files that --data may refer to, whichever model reads them. They must not be overwritten.
#pragma once

#include <string>
#include <vector>

namespace isonorm::data {

// The file `data` itself, and the files that image sets and pairs read in the folder `data`. An ImageFolder has all
// files below its parts, whether they are read or not; the other sets have all names that they look for, whether they
// exist or not. Empty: the folder that images are read from by default.
std::vector<std::string> data_files(const std::string& data);

}  // namespace isonorm::data
