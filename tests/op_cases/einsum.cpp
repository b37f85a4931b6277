// The row of einsum. The reference loops over all values of all letters.
#include "autograd/ops/matmul.h"

#include <map>

#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

// The letters of the formulas below, with their sizes.
const std::map<char, int64_t> kSizes = {{'a', 2}, {'b', 3}, {'c', 4}, {'d', 2}, {'e', 5}, {'i', 3},
                                        {'j', 4}, {'k', 5}, {'Z', 2}, {'o', 1}, {'n', 0}};

struct Formula {
  std::vector<std::string> terms;
  std::string result;
};

Formula parsed(const std::string& formula, const std::string& result) {
  Formula f{{""}, result};
  for (char c : formula.substr(0, formula.find('-'))) {
    if (c == ',')
      f.terms.emplace_back();
    else if (c != ' ')
      f.terms.back() += c;
  }
  return f;
}

Dims shape_of(const std::string& letters, const std::map<char, int64_t>& sizes) {
  Dims shape;
  for (char c : letters) shape.push_back(sizes.at(c));
  return shape;
}

Array naive(const Formula& f, const Arrays& x, std::map<char, int64_t> sizes) {
  std::string all = f.result;
  for (const std::string& t : f.terms)
    for (char c : t)
      if (all.find(c) == std::string::npos) all += c;
  std::vector<int64_t> at(all.size());
  const auto place = [&](const std::string& letters) {
    Dims i;
    for (char c : letters) i.push_back(at[all.find(c)]);
    return i;
  };
  Array y(shape_of(f.result, sizes));
  std::vector<long double> sums(y.v.size());
  int64_t left = 1;
  for (char c : all) left *= sizes.at(c);
  for (; left > 0; --left) {
    long double p = 1;
    for (size_t k = 0; k < x.size(); ++k) p *= x[k].at(place(f.terms[k]));
    sums[static_cast<size_t>(y.offset(place(f.result)))] += p;
    for (size_t d = all.size(); d-- > 0 && ++at[d] == sizes.at(all[d]);) at[d] = 0;
  }
  for (size_t i = 0; i < sums.size(); ++i) y.v[i] = static_cast<double>(sums[i]);
  return y;
}

}  // namespace

std::vector<OpCase> einsum_cases() {
  OpCase op = row_of("Matrix products", "einsum", "(const std::string& formula, const std::vector<Tensor>& operands)",
                     "the sum of products that a formula as \"bij,bjk->bik\" states; no letter twice in an operand",
                     tolerance::product);
  const auto add = [&](const std::string& formula, const std::string& result,
                       const std::map<char, int64_t>& sizes = kSizes) -> Sample& {
    const Formula f = parsed(formula, result);
    Arrays x;
    for (const std::string& t : f.terms) x.push_back(op.draw.normal(shape_of(t, sizes)));
    Sample& s = op.add(
        formula, x, [=](const Tensors& t) { return einsum(formula, t); },
        [=](const Arrays& a) { return naive(f, a, sizes); });
    s.length = 120;
    return s;
  };
  // One operand: unchanged, transposed, summed. Two operands: products, batches, sums over letters of one operand,
  // elementwise, inner, outer. Three and more operands.
  const std::vector<std::string> one = {"ij->ij", "ij->ji", "ijk->kij", "ij->", "ij->j", "ijk->ki", "->", "noi->i"},
                                 two = {"ij,jk->ik",    "ij,jk->ki",   "ji,jk->ik",     "ij,kj->ik",
                                        "bij,bjk->bik", "bij,jk->bik", "ij,bjk->bik",   "aibj,cjbk->abcik",
                                        "ij,ij->ij",    "ij,ij->",     "ij,ij->i",      "ij,ji->j",
                                        "i,j->ij",      "i,ij->j",     "ij,j->i",       "ija,jkb->ik",
                                        ",ij->ji",      "ij,kc->",     "iboj,ocj->bic", "in,nk->ik",
                                        "ab,cd->dbca"},
                                 more = {"ij,jk,ka->ia",   "i,j,k->kji", "ai,bij,cj->abc",
                                         "bi,bj,bk->bijk", "i,i,i->",    "ab,bc,cd,de->ae"};
  for (const auto& formulas : {one, two, more})
    for (const std::string& f : formulas) add(f, f.substr(f.find("->") + 2));
  add("abij, abjk -> abik", "abik");
  // Without "->" the result has the letters that occur once, in alphabetical order.
  const std::vector<std::pair<std::string, std::string>> implied = {
      {"ji", "ij"}, {"Zab", "Zab"}, {"ij,jk", "ik"}, {"i,i", ""}, {",", ""}, {"n,n", ""}, {"i,i,i", ""}};
  for (const auto& [formula, result] : implied) add(formula, result);
  const std::map<char, int64_t> large = {{'b', 3}, {'i', 70}, {'j', 40}, {'k', 50}};
  add("bij,bkj->bik", "bik", large).large = true;
  op.refuse({"ij,jk->ik", "2 operands", "1"}, [] { einsum("ij,jk->ik", {reals({2, 3})}); });
  op.refuse({"'j'", "3", "4"}, [] { einsum("ij,jk->ik", {reals({2, 3}), reals({4, 5})}); });
  op.refuse({"'ijk'", "3 dimensions", "[2, 3]"}, [] { einsum("ijk->i", {reals({2, 3})}); });
  op.refuse({"'i'", "twice", "'ii'"}, [] { einsum("ii->i", {reals({2, 2})}); });
  op.refuse({"'i'", "twice", "'ii'"}, [] { einsum("i->ii", {reals({2})}); });
  op.refuse({"'k'", "no operand"}, [] { einsum("ij->k", {reals({2, 2})}); });
  op.refuse({"'.'", "letter"}, [] { einsum(".j->j", {reals({2, 2})}); });
  op.refuse({"f32", "f64"}, [] { einsum("i,i", {reals({2}), reals({2}, DType::f64)}); });
  op.refuse({"i64"}, [] { einsum("i,i", {integers({2}), integers({2})}); });
  op.refuse({"abcdefghi", "8"}, [] { einsum("abcde,fghi", {reals({1, 1, 1, 1, 1}), reals({1, 1, 1, 1})}); });
  op.refuse({"0 are given"}, [] { einsum("i", {}); });
  return {op};
}

}  // namespace isonorm::test
