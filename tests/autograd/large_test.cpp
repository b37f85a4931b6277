// Results that are large enough to be stored past the caches have the same bits as small ones.
#include "tests/support/compare.h"
#include "tests/support/tolerance.h"
#include "tests/autograd/room.h"

using test::randn;

namespace {

using Values = std::vector<double>;
using Function = std::function<std::vector<Tensor>(const Tensor& x, const Tensor& branch)>;

constexpr int64_t kRows = 4096, kWidth = 512, kPart = 512;  // in f32, 8 MiB and 1 MiB

// Outputs of f and gradients of x and branch for the rows [begin, end). given: x, branch, cotangents of two outputs.
std::vector<Values> results(const Function& f, const std::vector<Tensor>& given, int64_t begin, int64_t end) {
  const auto rows = [&](size_t i) { return contiguous(slice(given[i], 0, begin, end)); };
  const Tensor x = require_grad(rows(0)), branch = require_grad(rows(1));
  const std::vector<Tensor> outputs = f(x, branch), leaves{x, branch}, cotangents{rows(2), rows(3)};
  std::vector<Values> all;
  for (const Tensor& y : outputs) all.push_back(y.to_vector<double>());
  for (const Tensor& g : grad(outputs, leaves, cotangents)) all.push_back(g.to_vector<double>());
  return all;
}

Function norm_of(const NormSpec& spec) {
  return [=](const Tensor& x, const Tensor& branch) {
    const Tensor gain = randn({kWidth}, 6, 1, 0.3, x.dtype()), bias = randn({kWidth}, 7, 0, 1, x.dtype());
    const AddNorm y = add_norm(x, branch, spec, gain, bias);
    return std::vector<Tensor>{y.sum, y.normed};
  };
}

template <class F, class G> Function both(F f, G g) {
  return [=](const Tensor& x, const Tensor& branch) { return std::vector<Tensor>{f(x, branch), g(x, branch)}; };
}

}  // namespace

TEST_CASE("large results have the bits of small ones") {
  const std::pair<const char*, Function> functions[] = {
      {"layer_norm", norm_of({NormKind::layer, 1e-5, 1})},
      {"rms_norm", norm_of({NormKind::rms, 1e-5, 1})},
      {"partial rms_norm", norm_of({NormKind::rms, 1e-5, 0.3})},
      {"crms_norm", norm_of({NormKind::crms, 1e-5, 1})},
      {"products and sums", both([](auto x, auto y) { return x * y; }, [](auto x, auto y) { return x + y; })},
      {"softmax", both([](auto x, auto) { return softmax(x); }, [](auto, auto branch) { return softmax(branch); })},
      {"log_softmax", both([](auto x, auto) { return log_softmax(x); }, [](auto, auto y) { return log_softmax(y); })}};
  for (const DType dtype : {DType::f32, DType::f64}) {
    std::vector<Tensor> given;
    for (uint64_t seed = 1; seed <= 4; ++seed) given.push_back(randn({kRows, kWidth}, seed, 0.5, 2, dtype));
    for (const auto& [name, f] : functions) {
      const std::vector<Values> large = results(f, given, 0, kRows);
      for (const int64_t begin : {int64_t{0}, kRows - kPart}) {
        const std::vector<Values> small = results(f, given, begin, begin + kPart);
        for (size_t i = 0; i < large.size(); ++i) {
          INFO(name << " in " << name_of(dtype) << ", result " << i << ", rows from " << begin);
          const Values part(large[i].begin() + begin * kWidth, large[i].begin() + (begin + kPart) * kWidth);
          CHECK((part == small[i]));
        }
      }
    }
  }
}

TEST_CASE("a large mlp has the values and gradients of its parts") {
  const auto results_of = [](auto f) {
    const std::vector<Tensor> leaves{require_grad(randn({kRows, 128}, 1, 0, 1, DType::f32)),
                                     require_grad(randn({kWidth, 128}, 2, 0, 0.1, DType::f32)),
                                     require_grad(randn({128, kWidth}, 3, 0, 0.1, DType::f32))};
    const Tensor y = f(leaves[0], leaves[1], Tensor(), leaves[2], Tensor(), GeluForm::erf);
    const std::vector<Tensor> outputs{y}, cotangents{randn({kRows, 128}, 4, 0, 1, DType::f32)};
    std::vector<Tensor> all = grad(outputs, leaves, cotangents);
    all.push_back(y);
    return all;
  };
  const std::vector<Tensor> fused = results_of(mlp), apart = results_of(reference::mlp);
  const double eps = std::numeric_limits<float>::epsilon(), longest = kRows;  // a weight's gradient sums over rows
  for (size_t i = 0; i < fused.size(); ++i) {
    INFO("result " << i);
    check_close(fused[i], apart[i], test::tolerance::composite.constant * eps * std::sqrt(longest));
  }
}
