// Trainings on nvcc's PTX have the CPU's losses, and the same bits in every order of blocks and warps and as a graph.
#include "nn/vit.h"
#include "optim/adam.h"
#include "streams/transformer.h"
#include "tests/ptx/runtime/kernels.h"
#include "tests/ptx/schedule.h"
#include "tests/support/device.h"
#include "tests/support/ops.h"
#include "training/steps/step.h"

using namespace isonorm;
using namespace isonorm::test;

namespace {

struct Task {
  std::unique_ptr<nn::Module> model;
  training::Examples batch;
};
using Make = std::function<Task()>;

// f64: only rounding differs from the CPU.
Task gpt(nn::TransformerOptions t, streams::Form form, DType dtype) {
  manual_seed(3);
  Generator g{.seed = 5};
  auto model =
      std::make_unique<nn::Gpt>(streams::make<nn::Gpt>({.vocab = 13, .context = 8, .transformer = t}, {.form = form}));
  model->to(dtype);
  return {std::move(model), {randint(0, 13, {2, 8}, kCpu, g), randint(0, 13, {2, 8}, kCpu, g)}};
}
Task vit() {
  manual_seed(3);
  Generator g{.seed = 5};
  const nn::TransformerOptions t{.width = 16, .depth = 1, .heads = 2};
  auto model = std::make_unique<nn::Vit>(streams::make<nn::Vit>(
      {.image = 8, .patch = 4, .classes = 5, .transformer = t}, {.form = streams::Form::layer_norm}));
  model->to(DType::f64);
  return {std::move(model), {randn({3, 8, 8, 1}, {.dtype = DType::f64}, g), randint(0, 5, {3}, kCpu, g)}};
}

struct Course {
  std::vector<double> losses;
  std::vector<Tensor> weights;
};
Course train(const Make& make, Device device, bool captured = false) {
  Task task = make();
  task.model->to(device);
  const training::Examples batch{to(task.batch.inputs, device), to(task.batch.targets, device)};
  optim::AdamW optimizer(task.model->parameters(), {.lr = 0.01});
  training::Step step(*task.model, optimizer, training::cross_entropy_of,
                      {.limits = {.norm = 0.5}, .captured = captured});
  Course course;
  for (int t = 0; t < 4; ++t) course.losses.push_back(step(batch, optimizer.lr()).loss);
  for (const Tensor& p : task.model->parameters()) course.weights.push_back(to(detach(p), kCpu));
  return course;
}

void check_same_bits(const Course& a, const Course& b) {
  CHECK(a.losses == b.losses);
  for (size_t i = 0; i < a.weights.size(); ++i) {
    INFO("weight " << i);
    CHECK(same_bytes(a.weights[i], b.weights[i]));
  }
}

void check(const Make& make, double bound) {
  using ptx::Schedule;
  const Schedule before = ptx::schedule();
  ptx::schedule() = Schedule();
  const Course cpu = train(make, kCpu), forward = train(make, kCuda);
  for (size_t t = 0; t < cpu.losses.size(); ++t) CHECK(forward.losses[t] == Approx(cpu.losses[t]).epsilon(bound));
  CHECK(cpu.losses.back() < cpu.losses.front());
  check_same_bits(forward, train(make, kCuda, true));
  for (const Schedule& order : {Schedule(Schedule::Order::reverse), Schedule(Schedule::Order::drawn, 7)}) {
    ptx::schedule() = order;
    check_same_bits(forward, train(make, kCuda));
  }
  ptx::schedule() = before;
}

}  // namespace

TEST_CASE("trainings on nvcc's PTX have the CPU's losses, and the same bits in every order and as a graph") {
  SECTION("GPT in f64") {
    check([] { return gpt({.width = 16, .depth = 1, .heads = 2}, streams::Form::layer_norm, DType::f64); }, 1e-10);
  }
  SECTION("ViT in f64") { check(vit, 1e-10); }
  SECTION("GPT in bf16, heads of 64: tensor cores") {
    check([] { return gpt({.width = 64, .depth = 1, .heads = 1}, streams::Form::rms_norm, DType::bf16); }, 0.03);
  }
}

TEST_CASE("all kernels are PTX that the interpreter executes") {
  const auto [count, refused] = ptx::decode_all_kernels();
  CHECK(count > 800);
  CHECK(refused == "");
}
