// One training step, and the graph that its backward goes through (docs/one_step.md follows it file by file).
#include <cstdio>
#include <string_view>

#include <isonorm/isonorm.h>

using namespace isonorm;

struct Net : nn::Module {
  nn::Linear& fc1 = add("fc1", nn::Linear(4, 8));
  nn::RMSNorm& norm = add("norm", nn::RMSNorm(8));
  nn::Linear& fc2 = add("fc2", nn::Linear(8, 3));
  Tensor forward(const Tensor& x) override { return fc2(norm(fc1(x))); }
};

int main(int argc, char** argv) {
  manual_seed(32);
  Net net;
  optim::Sgd opt(net.parameters(), {.lr = 0.1});
  const Tensor x = randn({5, 4}), labels = tensor({0, 1, 2, 1, 0});

  const Tensor loss = cross_entropy(net(x), labels);
  if (argc > 1 && std::string_view(argv[1]) == "dot") {
    print_graph(loss, {.names = net.state_dict(), .dot = true});
    return 0;
  }
  print_graph(loss, {.names = net.state_dict()});

  opt.zero_grad();
  loss.backward();
  const Tensor expected = detach(net.fc1.weight - 0.1 * net.fc1.weight.grad());
  opt.step();

  const NoGrad no_grad;
  std::printf("\nloss before the step %.4f, after it %.4f\n", loss.item(), cross_entropy(net(x), labels).item());
  std::printf("fc1.weight is off w - 0.1 dL/dw by %.0e\n", amax(abs(net.fc1.weight - expected)).item());
}
