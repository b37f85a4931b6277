// Tensors: values in, arithmetic with broadcasting, views, reductions, values out.
#include <iostream>

#include <isonorm/isonorm.h>

using namespace isonorm;

int main() {
  Tensor a = tensor({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});
  std::cout << "a =\n" << a << "\n\n";

  // Shapes broadcast from the right: a row is added to every row.
  const Tensor row = tensor({10.f, 20.f, 30.f});
  std::cout << "a + row =\n" << a + row << "\n\n";

  // A view shares its elements with its tensor: nothing was copied.
  const Tensor t = a.transpose();
  std::cout << "a.transpose() =\n" << t << ", strides " << t.strides() << "\n\n";
  a[0] = 7;
  std::cout << "after a[0] = 7 its transpose is\n" << t << "\n\n";

  // Matrix products read transposed views directly, without a copy.
  std::cout << "a a^T =\n" << a.matmul(t) << "\n\n";
  std::cout << "sum " << a.sum().item() << ", mean of columns " << a.mean(0) << "\n\n";

  // An error is one line that names the op, the problem and both values.
  try {
    a.matmul(a);
  } catch (const Error& e) {
    std::cout << "error: " << e.what() << "\n";
  }
}
