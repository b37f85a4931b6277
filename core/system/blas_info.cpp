#include "core/system/blas_info.h"

#include <cblas.h>
#include <strings.h>

#include <algorithm>

namespace isonorm {

namespace {

// Width, in bits, of the widest vectors that OpenBLAS's kernels use on an x86-64 core of this name (OpenBLAS's
// driver/others/dynamic.c and kernel/x86_64/KERNEL.*). 0: the core is not known.
int vector_bits(const std::string& core) {
  const auto is_one_of = [&](std::initializer_list<const char*> names) {
    return std::ranges::any_of(names, [&](const char* name) { return strcasecmp(core.c_str(), name) == 0; });
  };
  if (is_one_of({"SkylakeX", "Cooperlake", "SapphireRapids"})) return 512;
  if (is_one_of({"Haswell", "Zen", "Excavator", "Steamroller", "Piledriver", "Bulldozer", "Sandybridge"})) return 256;
  if (is_one_of({"Prescott", "Core2", "Penryn", "Dunnington", "Nehalem", "Atom", "Nano", "Barcelona", "Bobcat",
                 "Opteron", "Opteron_SSE3", "Athlon", "Katmai", "Coppermine", "Northwood", "Banias"}))
    return 128;
  return 0;
}

}  // namespace

BlasInfo blas_info() {
  const std::string config = openblas_get_config();  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY ..."
  const std::string core = openblas_get_corename();
  const int parallel = openblas_get_parallel();
  return {.version = config.substr(0, config.find(' ', config.find(' ') + 1)),
          .core = core,
          .vector_bits = vector_bits(core),
          .flavour = parallel == OPENBLAS_OPENMP   ? "openmp"
                     : parallel == OPENBLAS_THREAD ? "pthread"
                                                   : "sequential"};
}

}  // namespace isonorm
