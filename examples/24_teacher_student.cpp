// A student learns from a teacher: the moving average of the student's own weights (mean teacher, 1703.01780).
#include <cstdio>

#include <isonorm/isonorm.h>

#include "argument.h"

using namespace isonorm;

struct Net : nn::Module {
  nn::Linear& fc1 = add("fc1", nn::Linear(1, 32));
  nn::Linear& fc2 = add("fc2", nn::Linear(32, 1));
  Tensor forward(const Tensor& x) override { return fc2(tanh(fc1(x))); }
};

int main(int argc, char** argv) try {
  const int steps = argc > 1 ? whole_number(argv[1]) : 500;
  constexpr double decay = 0.9;
  manual_seed(1);
  const Tensor x = linspace(-2, 2, 16).unsqueeze(1), y = sin(x), unlabelled = linspace(-3, 3, 64).unsqueeze(1);
  Net student;
  optim::Adam opt(student.parameters(), {.lr = 1e-2});
  optim::Ema teacher(student.parameters(), {.decay = decay});
  double average = student.fc2.bias[0].item();  // average of a weight, by the formula
  for (int step = 0; step < steps; ++step) {
    teacher.apply();
    const Tensor told = student(unlabelled).detach();
    teacher.restore();
    const Tensor loss = mse_loss(student(x), y) + mse_loss(student(unlabelled + randn_like(unlabelled) * 0.05), told);
    opt.zero_grad(), loss.backward(), opt.step(), teacher.update();
    average = decay * average + (1 - decay) * student.fc2.bias[0].item();
  }
  const NoGrad no_grad;
  teacher.apply();
  std::printf("the teacher is off sin by %.3f\n", (student(x) - y).abs().amax().item());
  const bool same = allclose(student.fc2.bias, full({1}, average), 0, 1e-6);
  std::printf("its bias is %s by the formula\n", same ? "the average" : "not the average");
} catch (const Error& e) {
  return std::fprintf(stderr, "24_teacher_student: %s\n", e.what()), 1;
}
