// An op that the library does not have, with a derivative of its own: y = x / (1 + |x|), dy/dx = 1 / (1 + |x|)^2 = (1 -
// |y|)^2.
#include <isonorm/isonorm.h>

#include <cmath>
#include <cstdio>

using namespace isonorm;

// Words that programs have for things of their own.
struct Node {
  int id;
};
struct Edge {
  Node from, to;
};
constexpr Edge kEdge{{1}, {2}};
static_assert(kEdge.from.id < kEdge.to.id);

Tensor softsign(const Tensor& x) {
  check(x.dtype() == DType::f64, "softsign: dtype is ", x.dtype(), ", expected f64");
  const Tensor in = contiguous(x), out = empty_like(in);
  const double* px = in.data<double>();
  double* py = out.mutable_data<double>();
  parallel_for(in.numel(), 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) py[i] = px[i] / (1 + std::abs(px[i]));
  });
  if (auto* n = track("softsign", {&out}, {&x}))
    n->backward = [y = save(out)](Flow& g) {
      if (g.wants(0)) g.give(0, g.out() * square(1.0 - abs(y)));
    };
  return out;
}

int main() {
  const Tensor x = from_vector<double>({-2, -0.5, 0.25, 1, 3, 7}, {2, 3});
  const GradcheckResult r =
      gradcheck([](const std::vector<Tensor>& in) { return matmul(softsign(in[0]), transpose(in[0], 0, 1)); }, {x});
  if (!r.ok) return std::printf("%s\n", r.message().c_str()), 1;
  try {
    softsign(tensor({1.f}));
  } catch (const Error& e) {  // thrown in one program part, caught in another: its type information must be shared
    std::printf("%s\n", e.what());
    return 0;
  }
  return 1;
}
