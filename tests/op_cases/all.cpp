#include <iterator>

#include "tests/op_cases/groups.h"

namespace isonorm::test {

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> all = [] {
    std::vector<OpCase> rows;
    for (auto group :
         {unary_cases, binary_cases, comparison_cases, reduce_cases, matmul_cases, shape_cases, arrange_cases}) {
      std::vector<OpCase> more = group();
      std::move(more.begin(), more.end(), std::back_inserter(rows));
    }
    return rows;
  }();
  return all;
}

}  // namespace isonorm::test
