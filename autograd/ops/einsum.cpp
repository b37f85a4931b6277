#include "autograd/ops/matmul.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"

namespace isonorm {
namespace {

bool has(const std::string& letters, char c) { return letters.find(c) != std::string::npos; }

// An operand or a product of operands: a letter for each dimension.
struct Term {
  std::string letters;
  Tensor x;
};

int64_t size_of(const Term& t, const std::string& letters) {
  int64_t size = 1;
  for (char c : letters) size = checked_mul(size, t.x.size(static_cast<int>(t.letters.find(c))), "einsum");
  return size;
}

// t summed over the letters that are not in `keep`.
Term summed(const Term& t, const std::string& keep) {
  Term left;
  std::vector<int> dims;
  for (size_t i = 0; i < t.letters.size(); ++i) {
    if (has(keep, t.letters[i]))
      left.letters += t.letters[i];
    else
      dims.push_back(static_cast<int>(i));
  }
  left.x = dims.empty() ? t.x : sum(t.x, dims);
  return left;
}

// t's elements with its dimensions in the order of the letters.
Tensor ordered(const Term& t, const std::string& letters) {
  std::vector<int> order;
  for (char c : letters) order.push_back(static_cast<int>(t.letters.find(c)));
  return permute(t.x, order);
}

// The product of two terms, summed over the letters that are not in `keep`.
Term contracted(const Term& first, const Term& second, const std::string& keep) {
  const Term a = summed(first, keep + second.letters), b = summed(second, keep + first.letters);
  std::string batch, inner, left, right;
  for (char c : a.letters) (!has(b.letters, c) ? left : has(keep, c) ? batch : inner) += c;
  for (char c : b.letters)
    if (!has(a.letters, c)) right += c;
  Term y{batch + left + right, {}};
  check(y.letters.size() <= kMaxRank, "einsum: a product has the dimensions ", y.letters, ", more than ", kMaxRank);
  const int64_t n = size_of(a, batch), l = size_of(a, left), k = size_of(a, inner), r = size_of(b, right);
  const Tensor u = ordered(a, batch + left + inner), v = ordered(b, batch + inner + right);
  if (inner.empty())
    y.x = mul(reshape(u, {n, l, 1}), reshape(v, {n, 1, r}));
  else if (left.empty() && right.empty())
    y.x = sum(mul(reshape(u, {n, k}), reshape(v, {n, k})), {1});
  else
    y.x = matmul(reshape(u, {n, l, k}), reshape(v, {n, k, r}));
  Dims shape;
  for (char c : y.letters) shape.push_back(size_of(has(a.letters, c) ? a : b, {c}));
  y.x = reshape(y.x, shape);
  return y;
}

}  // namespace

Tensor einsum(const std::string& formula, const std::vector<Tensor>& operands) {
  std::string terms;
  for (char c : formula)
    if (c != ' ') terms += c;
  const size_t arrow = terms.find("->");
  std::string result = arrow == std::string::npos ? "" : terms.substr(arrow + 2);
  terms = terms.substr(0, arrow) + ',';
  check(std::count(terms.begin(), terms.end(), ',') == static_cast<int64_t>(operands.size()), "einsum: '", formula,
        "' names ", std::count(terms.begin(), terms.end(), ','), " operands, ", operands.size(), " are given");

  std::vector<Term> parts;
  std::array<int64_t, 128> sizes;
  sizes.fill(-1);
  std::set<char> once, seen;
  for (const Tensor& x : operands) {
    const Tensor& first = operands.front();
    check_same_device("einsum", first, x);
    check(is_floating(x.dtype()) && x.dtype() == first.dtype(), "einsum: dtypes are ", first.dtype(), " and ",
          x.dtype(), ", expected one of f32, f64, bf16");
    const std::string letters = terms.substr(0, terms.find(','));
    terms.erase(0, letters.size() + 1);
    check(letters.size() == static_cast<size_t>(x.rank()), "einsum: '", letters, "' names ", letters.size(),
          " dimensions of shape ", x.shape());
    for (size_t i = 0; i < letters.size(); ++i) {
      const char c = letters[i];
      check(c > 0 && std::isalpha(c), "einsum: '", std::string(1, c), "' in '", formula, "' is not a letter");
      check(letters.find(c) == i, "einsum: '", std::string(1, c), "' occurs twice in '", letters,
            "'; diagonals are not supported");
      int64_t& size = sizes[static_cast<size_t>(c)];
      const int64_t here = x.size(static_cast<int>(i));
      check(size < 0 || size == here, "einsum: '", std::string(1, c), "' has sizes ", size, " and ", here);
      size = here;
      if (seen.insert(c).second)
        once.insert(c);
      else
        once.erase(c);
    }
    parts.push_back({letters, x});
  }
  if (arrow == std::string::npos) result.assign(once.begin(), once.end());
  for (size_t i = 0; i < result.size(); ++i)
    check(seen.count(result[i]) && result.find(result[i]) == i, "einsum: '", std::string(1, result[i]),
          "' of the result occurs in no operand, or twice in '", result, "'");

  Term y = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    std::string keep = result;
    for (size_t later = i + 1; later < parts.size(); ++later) keep += parts[later].letters;
    y = contracted(y, parts[i], keep);
  }
  return ordered(summed(y, result), result);
}

}  // namespace isonorm
