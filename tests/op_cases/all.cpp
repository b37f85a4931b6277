// All rows, or with ISONORM_OP_ROWS=GROUP in the environment those of one group: on a GPU an error stays until the
// process ends, so `scripts/gpu truth` runs each group in a process of its own.
#include <cstdlib>
#include <iterator>
#include <string_view>

#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

struct Group {
  const char* name;
  std::vector<OpCase> (*rows)();
  std::vector<FusedCase> (*fused)() = nullptr;
};

constexpr Group kGroups[] = {{"create", create_cases},
                             {"copy", copy_cases},
                             {"random", random_cases},
                             {"unary", unary_cases},
                             {"binary", binary_cases},
                             {"comparison", comparison_cases},
                             {"reduce", reduce_cases},
                             {"matmul", matmul_cases},
                             {"einsum", einsum_cases},
                             {"shape", shape_cases},
                             {"arrange", arrange_cases},
                             {"window", window_cases},
                             {"index", index_cases},
                             {"softmax", softmax_cases},
                             {"rotary", rotary_cases},
                             {"norm", norm_cases, add_norm_fused_cases},
                             {"image", image_cases},
                             {"loss", loss_cases},
                             {"mlp", mlp_cases, mlp_fused_cases},
                             {"attention", attention_cases, attention_fused_cases},
                             {"recurrent", recurrent_cases, recurrent_fused_cases},
                             {"group_norm", group_norm_cases, group_norm_fused_cases},
                             {"linear_cross_entropy", linear_cross_entropy_cases, linear_cross_entropy_fused_cases}};

template <class Row> std::vector<Row> join(std::vector<Row> (*Group::*member)()) {
  const char* chosen = std::getenv("ISONORM_OP_ROWS");
  std::vector<Row> rows;
  std::string names;
  bool found = false;
  for (const Group& group : kGroups) {
    names += std::string(" ") + group.name;
    if (chosen && std::string_view(chosen) != group.name) continue;
    found = true;
    if (!(group.*member)) continue;
    std::vector<Row> more = (group.*member)();
    std::move(more.begin(), more.end(), std::back_inserter(rows));
  }
  check(found, "ISONORM_OP_ROWS=", chosen ? chosen : "", ": the groups are", names);
  return rows;
}

}  // namespace

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> all = join(&Group::rows);
  return all;
}

const std::vector<FusedCase>& fused_cases() {
  static const std::vector<FusedCase> all = join(&Group::fused);
  return all;
}

}  // namespace isonorm::test
