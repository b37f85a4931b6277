// How far apart does one unit in the last place drive two trainings? Rounding errors grow while a model trains, so
// "equal up to rounding" needs a control: the same model and batches, with every weight changed by one ulp.
//   usage: 12_control_run [steps]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include <isonorm/equivalence/lockstep/trainee.h>
#include <isonorm/isonorm.h>

#include "argument.h"

using namespace isonorm;

namespace {

nn::Gpt build(streams::Form form, DType dtype) {
  nn::Gpt model = streams::make<nn::Gpt>(
      {.vocab = 13, .context = 6, .transformer = {.width = 8, .depth = 2, .heads = 2}}, {.form = form});
  model.to(dtype);
  return model;
}

struct Path {
  std::vector<double> control, rms;  // |loss - loss of layer_norm| at every step
};

template <class Optimizer, class Options> Path train(DType dtype, Options options, int steps) {
  manual_seed(12);
  nn::Gpt reference = build(streams::Form::layer_norm, dtype), control = build(streams::Form::layer_norm, dtype),
          rms = build(streams::Form::rms_norm, dtype);
  control.load_state_dict(reference.state_dict()), rms.load_state_dict(reference.state_dict());
  equivalence::move_by_one_ulp(control, /*seed=*/1);
  Optimizer opt_reference(reference.parameters(), options), opt_control(control.parameters(), options),
      opt_rms(rms.parameters(), options);
  Generator data{12, 0};
  Path path;
  for (int t = 0; t < steps; ++t) {
    const Tensor ids = randint(0, 13, {4, 6}, kCpu, data), next = randint(0, 13, {4, 6}, kCpu, data);
    const auto step = [&](nn::Gpt& model, Optimizer& opt) {
      const Tensor loss = cross_entropy(model(ids), next);
      opt.zero_grad();
      backward(loss);
      opt.step();
      return loss.item();
    };
    const double loss = step(reference, opt_reference);
    path.control.push_back(std::abs(step(control, opt_control) - loss));
    path.rms.push_back(std::abs(step(rms, opt_rms) - loss));
  }
  return path;
}

double up_to(const std::vector<double>& v, int t) { return *std::max_element(v.begin(), v.begin() + t); }

}  // namespace

int main(int argc, char** argv) try {
  const int steps = argc > 1 ? whole_number(argv[1]) : 200;
  set_num_threads(1);  // the model is too small for several threads
  const Path runs[] = {train<optim::Sgd>(DType::f64, optim::SgdOptions{.lr = 0.1}, steps),
                       train<optim::Sgd>(DType::f64, optim::SgdOptions{.lr = 2}, steps),
                       train<optim::Adam>(DType::f64, optim::AdamOptions{.lr = 3e-3}, steps),
                       train<optim::Sgd>(DType::f32, optim::SgdOptions{.lr = 2}, steps)};
  std::printf("largest |loss - loss of layer_norm| so far: layer_norm + 1 ulp | rms_norm\n\n");
  std::printf("step   %-19s  %-19s  %-19s  %s\n", "f64 SGD 0.1", "f64 SGD 2", "f64 Adam 3e-3", "f32 SGD 2");
  for (int t : {1, 2, 5, 10, 20, 50, 100, 200, 300, 500}) {
    if (t > steps) break;
    std::printf("%4d", t);
    for (const Path& p : runs) std::printf("   %8.1e | %7.1e", up_to(p.control, t), up_to(p.rms, t));
    std::printf("\n");
  }
  std::printf("\nrms_norm follows the control: as far from layer_norm as layer_norm is from itself.\n");
} catch (const Error& e) {
  return std::fprintf(stderr, "12_control_run: %s\n", e.what()), 1;
}
