#include "streams/rotation.h"

#include <bit>
#include <cmath>
#include <vector>

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/random.h"
#include "io/npy.h"
#include "io/safetensors.h"
#include "nn/init.h"
#include "nn/modes.h"

namespace isonorm::streams {
namespace {

constexpr int64_t kMostBeside = int64_t{1} << 20;  // bytes that a file may have besides the matrix

bool is_prime(int64_t n) {  // n > 1
  for (int64_t i = 2; i * i <= n; ++i)
    if (n % i == 0) return false;
  return true;
}

// The order m of Paley's matrix that repeated doubling turns into a Hadamard matrix of order d; 1 if d is a power of
// two, 0 if there is no such m.
int64_t core_order(int64_t d) {
  int64_t m = d;
  while (m % 2 == 0) m /= 2;
  if (m == 1) return 1;
  for (; m <= d; m *= 2)
    if (m % 4 == 0 && is_prime(m - 1)) return m;
  return 0;
}

// A Hadamard matrix of order q + 1, for q = 0 or a prime q = 4n + 3: I + [0, 1^T; -1, chi(i - j)], where chi is 1 for
// squares modulo q, -1 for other numbers and 0 for 0 (Paley 1933, lemma 2).
std::vector<double> paley(int64_t q) {
  const int64_t m = q + 1;
  std::vector<double> chi(static_cast<size_t>(std::max(q, int64_t{1})), -1), h(static_cast<size_t>(m * m));
  chi[0] = 0;
  for (int64_t i = 1; i < q; ++i) chi[i * i % q] = 1;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < m; ++j) h[i * m + j] = i == j || i == 0 ? 1 : j == 0 ? -1 : chi[(i - j + q) % q];
  return h;
}

void check_rotation(const Tensor& q, int64_t d) {
  check(q.dtype() == DType::f32 || q.dtype() == DType::f64, "rotation: the matrix has dtype ", q.dtype(),
        ", expected f32 or f64");
  const double off = off_orthogonal(q.to(DType::f64)),
               bound = 2 * std::sqrt(static_cast<double>(d)) * epsilon(q.dtype());
  check(off <= bound, "rotation: the matrix is not orthogonal: Q^T Q - I has an entry of ", off, ", rounding explains ",
        bound);
}

}  // namespace

Tensor times(const Tensor& x, int dim, const Tensor& matrix) {
  const int d = normalize_dim(dim, x.rank(), "stream");
  return d == x.rank() - 1 ? matmul(x, matrix) : transpose(matmul(transpose(x, d, -1), matrix), d, -1);
}

Tensor hadamard_rotation(int64_t d, uint64_t seed) {
  const int64_t m = d > 0 ? core_order(d) : 0;
  check(m > 0, "rotation: no Hadamard matrix of order ", d,
        " is known here, which has 2^k, and 2^k (q + 1) with a prime q = 4n + 3; haar takes any width");
  const std::vector<double> core = paley(m - 1);
  Generator generator{seed, 0};
  const std::vector<int64_t> sign = randint(0, 2, {d}, kCpu, generator).to_vector<int64_t>();
  const double size = 1 / std::sqrt(static_cast<double>(d));
  const int64_t times = d / m;
  std::vector<double> q(static_cast<size_t>(d * d));
  for (int64_t i = 0; i < d; ++i)
    for (int64_t j = 0; j < d; ++j) {
      const bool minus = std::popcount(static_cast<uint64_t>(i % times & j % times)) % 2 != (sign[i] != 0);
      q[i * d + j] = core[j / times * m + i / times] * (minus ? -size : size);
    }
  return from_vector(q, {d, d});
}

Tensor haar_rotation(int64_t d, uint64_t seed) {
  const DrawsFrom draws({seed, 0});
  const nn::SkipInit never(false);                                         // draw even within another SkipInit
  return nearest_orthogonal(nn::init::orthogonal({d, d}).to(DType::f64));  // init rounds to f32
}

Tensor load_rotation(const std::string& path, int64_t d) {
  const Bytes file = open_bytes(path);
  check(file.size / 8 <= d * d + kMostBeside / 8, path, ": rotation: the file has ", file.size,
        " bytes, more than a matrix [", d, ", ", d, "] takes");
  TensorMap tensors;
  if (path.ends_with(".npy"))
    tensors.add(path, load_npy(file));
  else
    tensors = load_safetensors(file);
  const Scope scope(path);  // the readers above name the file themselves
  check(tensors.size() == 1, "rotation: the file has ", tensors.size(), " tensors, expected the matrix alone");
  const Tensor q = tensors.begin()->second;
  check(q.shape() == Dims{d, d}, "rotation: the matrix has shape ", q.shape(), ", the stream stores rows of ", d);
  check_rotation(q, d);
  return nearest_orthogonal(q.to(DType::f64));
}

double off_orthogonal(const Tensor& q) {
  NoGrad no_grad;
  const Tensor off = abs(matmul(transpose(q, 0, 1), q) - eye(q.size(1), -1, {DType::f64}));
  return amax(off).item();
}

Tensor nearest_orthogonal(const Tensor& matrix) {
  NoGrad no_grad;
  Tensor x = matrix;
  for (double last = INFINITY;;) {
    const Tensor products = matmul(transpose(x, 0, 1), x);
    const double off = amax(abs(products - eye(x.size(1), -1, {DType::f64}))).item();
    if (!(off < last / 2)) return x;
    last = off;
    x = x * 1.5 - matmul(x, products) * 0.5;
  }
}

}  // namespace isonorm::streams
