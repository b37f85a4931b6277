#include <iterator>

#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

template <class Row, class... Groups> std::vector<Row> join(Groups... groups) {
  std::vector<Row> rows;
  const auto append = [&](std::vector<Row> more) { std::move(more.begin(), more.end(), std::back_inserter(rows)); };
  (append(groups()), ...);
  return rows;
}

}  // namespace

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> all = join<OpCase>(
      create_cases, copy_cases, random_cases, unary_cases, binary_cases, comparison_cases, reduce_cases, matmul_cases,
      shape_cases, arrange_cases, index_cases, softmax_cases, rotary_cases, norm_cases, image_cases, loss_cases,
      mlp_cases, attention_cases, recurrent_cases, group_norm_cases, linear_cross_entropy_cases);
  return all;
}

const std::vector<FusedCase>& fused_cases() {
  static const std::vector<FusedCase> all =
      join<FusedCase>(add_norm_fused_cases, group_norm_fused_cases, mlp_fused_cases, attention_fused_cases,
                      recurrent_fused_cases, linear_cross_entropy_fused_cases);
  return all;
}

}  // namespace isonorm::test
