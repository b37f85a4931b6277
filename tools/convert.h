// What convert and rotate share: a checkpoint in other coordinates of its residual stream, verified before it is written.
#pragma once

#include <string>

#include "core/tensor.h"
#include "tools/verb.h"

namespace isonorm::tools {

struct ConvertOptions {
  std::string in, out, from, to, spec, reference, dtype, data, fold = "all", as;
  std::string basis;  // of rotate, which has no `to`
  double eps = 0;     // 0: not asked for
  int64_t shard = 5'000'000'000;
  bool inference = false, quiet = false, unit_gains = false;
};

// The exit code.
int run_convert(const ConvertOptions& options);

// --max-shard-size.
void add_shard_size(CLI::App& command, int64_t& bytes);

// The file that --basis names; empty where it names a kind.
std::string basis_file(const std::string& basis);
// The rotation [d, d] of a basis "hadamard:SEED", "haar:SEED" or a file (streams/rotation.h). Throws UsageError where the seed is
// none.
Tensor basis_rotation(const std::string& basis, int64_t d);

}  // namespace isonorm::tools
