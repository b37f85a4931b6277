// All rows, or the rows of one group if the environment has ISONORM_OP_ROWS=GROUP. On a GPU an error persists until the
// process ends, so `scripts/gpu truth` runs each group in its own process.
#include <cstdlib>
#include <string_view>

#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

struct Group {
  const char* name;
  std::vector<OpCase> (*rows)();
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
                             {"statistics", statistics_cases},
                             {"distance", distance_cases},
                             {"softmax", softmax_cases},
                             {"rotary", rotary_cases},
                             {"norm", norm_cases},
                             {"image", image_cases},
                             {"convolution", convolution_cases},
                             {"resize", resize_cases},
                             {"loss", loss_cases},
                             {"mlp", mlp_cases},
                             {"attention", attention_cases},
                             {"recurrent", recurrent_cases},
                             {"group_norm", group_norm_cases},
                             {"linear_cross_entropy", linear_cross_entropy_cases}};

std::vector<OpCase> all_rows() {
  const char* chosen = std::getenv("ISONORM_OP_ROWS");
  std::vector<OpCase> rows;
  std::string names;
  for (const Group& group : kGroups) {
    names += std::string(" ") + group.name;
    if (chosen && std::string_view(chosen) != group.name) continue;
    for (OpCase& op : group.rows()) rows.push_back(std::move(op));
  }
  check(!rows.empty(), "ISONORM_OP_ROWS=", chosen ? chosen : "", ": the groups are", names);
  return rows;
}

// The result of a fused op with UseReference: it is then composed of other ops.
Tensors composition(const OpCase& op, const Sample& s, const Tensors& x) {
  const UseReference guard;
  const Tensors y = s.run(x);
  for (const Tensor& t : y)
    check(!t.impl().node || t.impl().node->name != op.name, op.name, ": its composition is itself");
  return y;
}

// A fused op's samples compared with its composition. Without the large samples on an emulated device, where they take
// minutes.
FusedCase fused_of(const OpCase& op) {
  FusedCase f{.name = op.name, .parameters = op.parameters};
  for (const Sample& s : op.samples)
    if (s.gradient && s.composed && !(s.large && test_device() != kCpu))
      f.samples.push_back({s.label,
                           s.inputs,
                           s.run,
                           [&op, &s](const Tensors& x) { return composition(op, s, x); },
                           {},
                           op.tolerance.weights ? 1. : 0});
  return f;
}

}  // namespace

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> all = all_rows();
  return all;
}

const std::vector<FusedCase>& fused_cases() {
  static const std::vector<FusedCase> all = [] {
    std::vector<FusedCase> fused;
    for (const OpCase& op : op_cases())
      if (op.name == "add_norm")
        fused.push_back(add_norm_fused_case());
      else if (op.group == "Fused")
        fused.push_back(fused_of(op));
    return fused;
  }();
  return all;
}

}  // namespace isonorm::test
