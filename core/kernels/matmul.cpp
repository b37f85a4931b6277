#include "core/kernels/matmul.h"

#include <cstdlib>
#include <string_view>

namespace isonorm::kernels {

bool openblas_asked() {
  static const bool asked = [] {
    const char* const wish = std::getenv("ISONORM_GEMM");
    const std::string_view name = wish ? wish : "";
    check(name.empty() || name == "own" || name == "openblas", "ISONORM_GEMM: '", name,
          "' is not known, expected own or openblas");
    return name == "openblas";
  }();
  return asked;
}

}  // namespace isonorm::kernels
