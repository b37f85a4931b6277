// print_graph(): the order is the engine's, as hooks see it, and the edges are written by hand.
#include "autograd/print_graph.h"

#include <sstream>

#include "tests/autograd/room.h"

namespace {

std::string printed_graph(const Tensor& y, const TensorMap& names = {}, bool dot = false) {
  std::ostringstream out;
  print_graph(out, y, {.names = names, .dot = dot});
  return out.str();
}

}  // namespace

TEST_CASE("print_graph: nodes in the order in which a backward takes them") {
  const Tensor x = require_grad(tensor({1.0, 2.0}));
  const Tensor a = exp(x), b = a * x, c = 3.0 * b, d = c + a, loss = sum(d);
  const std::string expected =
      "0: sum f64 [] -> 1\n"
      "1: add f64 [2] -> 2 4\n"
      "2: mul f64 [2] -> 3\n"
      "3: mul f64 [2] -> 4 5\n"
      "4: exp f64 [2] -> 5\n"
      "5: leaf x f64 [2]\n";
  TensorMap names;
  names.add("x", x);
  CHECK(printed_graph(loss, names) == expected);

  std::string taken;
  const std::vector<std::pair<char, Tensor>> all = {{'x', x}, {'a', a}, {'b', b}, {'c', c}, {'d', d}, {'l', loss}};
  for (const auto& [letter, tensor] : all)
    on_grad(tensor, [&taken, letter = letter](const Tensor& g) {
      taken += letter;
      return g;
    });
  backward(loss);
  CHECK(taken == "ldcbax");
  CHECK(printed_graph(loss, names) == expected);  // the released graph, too
}

TEST_CASE("print_graph: constants, an input that is used twice, several outputs") {
  const Tensor x = require_grad(tensor({1.0f, 2.0f, 3.0f}));
  CHECK(printed_graph(x * tensor({2.0f})) == "0: mul f32 [3] -> 1 -\n1: leaf f32 [3]\n");
  CHECK(printed_graph(x + x) == "0: add f32 [3] -> 1 1\n1: leaf f32 [3]\n");
  CHECK(printed_graph(x) == "0: leaf f32 [3]\n");
  // Output 1 of an op; the second leaf is the anchor of checkpoint().
  const auto sums = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{exp(in[0]), sum(in[0])}; };
  CHECK(printed_graph(exp(checkpoint(sums, {x})[1])) ==
        "0: exp f32 [] -> 1:1\n"
        "1: checkpoint f32 [3] f32 [] -> 2 3\n"
        "2: leaf f32 [3]\n"
        "3: leaf f32 []\n");
}

TEST_CASE("print_graph: the language of Graphviz") {
  const Tensor x = require_grad(tensor({1.0f, 2.0f}));
  CHECK(printed_graph(sum(x + x), {}, true) ==
        "digraph backward {\n"
        "  0 [label=\"0: sum f32 []\"]\n  0 -> 1\n"
        "  1 [label=\"1: add f32 [2]\"]\n  1 -> 2\n  1 -> 2\n"
        "  2 [label=\"2: leaf f32 [2]\"]\n"
        "}\n");
}

TEST_CASE("print_graph: a tensor without a gradient and a running backward are refused; the backward goes on") {
  CHECK_THROWS_WITH(print_graph(tensor({1.0f})), Contains("print_graph: the tensor of shape [1]"));
  const Tensor x = require_grad(tensor({2.0})), y = x * x;
  on_grad(y, [&](const Tensor& g) {
    CHECK_THROWS_WITH(printed_graph(y), Contains("another backward is running"));
    return g;
  });
  backward(y);
  CHECK(x.grad().item() == 4);
}
