// The kernels that nvcc wrote into the objects of this program.
#pragma once

#include <string>

namespace isonorm::ptx {

struct Decoded {
  int kernels = 0;
  std::string refused;  // the first kernel that the interpreter cannot execute, and why
};
Decoded decode_all_kernels();

}  // namespace isonorm::ptx
