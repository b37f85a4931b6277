// Tensors: values in, arithmetic with broadcasting, views, reductions, values out.
#include <cstdio>

#include <isonorm/isonorm.h>

using namespace isonorm;

int main() {
  const Tensor a = from_vector<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  std::printf("a =\n%s\n\n", to_string(a).c_str());

  // Shapes broadcast from the right: a row is added to every row.
  const Tensor row = tensor({10.f, 20.f, 30.f});
  std::printf("a + row =\n%s\n\n", to_string(a + row).c_str());

  // A view shares its elements with the tensor it was taken from: no copy was made.
  const Tensor t = transpose(a, 0, 1);
  std::printf("transpose(a) =\n%s, strides %s\n\n", to_string(t).c_str(), text(t.strides()).c_str());
  fill(select(a, 0, 0), 7);
  std::printf("after filling row 0 of a, its transpose is %s\n\n", to_string(t).c_str());

  // Matrix products read transposed views as they lie.
  std::printf("a a^T =\n%s\n\n", to_string(matmul(a, t)).c_str());
  std::printf("sum %g, mean of columns %s\n\n", sum(a).item(), to_string(mean(a, {0})).c_str());

  // Misfits are one line that names the op, what is wrong and both values.
  try {
    matmul(a, a);
  } catch (const Error& e) {
    std::printf("error: %s\n", e.what());
  }
}
