// Fine-tuning: a network learns one curve. Then its body is frozen and gets a new head, which learns two curves from
// few points. The best weights are kept as a copy. Finally, the body is loaded into a network with a third head.
#include <iostream>

#include <isonorm/isonorm.h>

#include "argument.h"

using namespace isonorm;

struct Net : nn::Module {
  nn::Sequential& body = add("body", nn::Sequential(nn::Linear(1, 32), nn::Tanh(), nn::Linear(32, 32), nn::Tanh()));
  nn::Linear& head;
  explicit Net(int64_t curves) : head(add("head", nn::Linear(32, curves))) {}
  Tensor forward(const Tensor& x) override { return head(body(x)); }
};

// Trains all parameters that are not frozen. Ends with the weights of the lowest loss, and returns this loss.
double fit(Net& net, const Tensor& x, const Tensor& y, int steps) {
  optim::Adam opt(net.parameters(), {.lr = 1e-2});  // skips frozen parameters
  double least = INFINITY;
  TensorMap best;
  for (int step = 0; step <= steps; ++step) {
    const Tensor loss = mse_loss(net(x), y);
    if (loss.item() < least) {
      least = loss.item();
      best = nn::clone(net.state_dict());  // a copy: the tensors of state_dict() change with the training
    }
    opt.zero_grad();
    backward(loss);
    opt.step();
  }
  net.load_state_dict(best);
  return least;
}

int main(int argc, char** argv) try {
  const int steps = argc > 1 ? whole_number(argv[1]) : 500;
  manual_seed(1);
  const Tensor x = reshape(linspace(-3, 3, 200), {200, 1});
  Net net(1);
  std::cout << net << "\n\nsin(x), all weights: loss " << fit(net, x, sin(x), steps) << "\n\n";

  // From here on `net.head` is the new head. Its parameters are new, so optimizers are created after this.
  net.body.freeze();
  net.replace("head", nn::Linear(32, 2));
  const Tensor few = reshape(linspace(-3, 3, 9), {9, 1});
  const Tensor two = cat({sin(few) * 2.0, sin(few + 0.3)}, 1);
  std::cout << net << "\n\n2 sin(x) and sin(x + 0.3), the head alone: loss " << fit(net, few, two, steps) << '\n';

  // A part of the state: the tensors of the body.
  TensorMap body;
  for (const auto& [name, tensor] : net.state_dict())
    if (name.starts_with("body.")) body.add(name, tensor);
  Net three(3);
  const nn::LoadedState loaded = three.load_state_dict(body, {.strict = false});
  std::cout << "into a net of three curves went " << body.size() << " tensors; it keeps its own";
  for (const std::string& name : loaded.missing) std::cout << ' ' << name;
  std::cout << '\n';
} catch (const Error& e) {
  return std::cerr << "19_fine_tune: " << e.what() << '\n', 1;
}
