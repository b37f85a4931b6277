// Training steps on a device: the number of waits in a step, and the same steps replayed as a graph.
#include "core/kernels/optimizer.h"
#include "core/memory/storage.h"
#include "gpu/device.h"
#include "gpu/recorder.h"
#include "gpu/steps/captured.h"
#include "io/data/augment.h"
#include "io/data/text.h"
#include "nn/generate.h"
#include "nn/vit.h"
#include "optim/adam.h"
#include "optim/clip.h"
#include "optim/sgd.h"
#include "optim/trust_ratio.h"
#include "tests/optim/cases.h"
#include "tests/support/device.h"
#include "tests/support/ops.h"
#include "tests/support/thrown.h"
#include "training/steps/step.h"

using namespace isonorm;
using namespace isonorm::test;
using Catch::Matchers::Contains;
using Kind = gpu::Recorded::Kind;

namespace {

using Tensors = std::vector<Tensor>;

// One optimizer for each update rule, from tests/optim/cases.h.
const std::vector<OptimizerCase> kOptimizers = [] {
  std::vector<OptimizerCase> found;
  for (const std::string_view name : {"adamw", "adam", "sgd", "momentum_decoupled", "lion", "rmsprop", "adagrad",
                                      "lars_all", "lamb", "muon", "adafactor"})
    found.push_back(*std::ranges::find(optimizer_cases(), name, &OptimizerCase::name));
  return found;
}();

nn::TransformerOptions small() {
  nn::TransformerOptions t{.width = 16, .depth = 1, .heads = 2};
  t.branch = {.dropout = 0.2, .stochastic_depth = 0.1};
  return t;
}

struct Task {
  std::unique_ptr<nn::Module> model;
  std::vector<training::Examples> batches;  // on the CPU
  training::Objective loss = training::cross_entropy_of;
};

Task gpt_task(bool rotary = false) {
  manual_seed(3);
  nn::TransformerOptions t = small();
  if (rotary) t.positions = nn::Positions::rotary;
  Task task{std::make_unique<nn::Gpt>(nn::GptOptions{.vocab = 11, .context = 8, .transformer = t}), {}};
  Generator g{.seed = 5};
  for (int i = 0; i < 6; ++i)
    task.batches.push_back({randint(0, 11, {4, 8}, kCpu, g), randint(0, 11, {4, 8}, kCpu, g)});
  return task;
}

Task vit_task() {
  manual_seed(3);
  Task task{std::make_unique<nn::Vit>(nn::VitOptions{.image = 8, .patch = 4, .classes = 5, .transformer = small()}),
            {}};
  Generator g{.seed = 5};
  for (int i = 0; i < 6; ++i) task.batches.push_back({randn({4, 8, 8, 1}, {}, g), randint(0, 5, {4}, kCpu, g)});
  return task;
}

Task mixed_vit_task() {
  Task task = vit_task();
  for (int64_t step = 0; training::Examples & b : task.batches)
    b.targets = data::mix(b.inputs, b.targets, {.alpha = 0.4, .classes = 5}, 1, step++);
  return task;
}

// The third tensor of a batch weights each target.
Task weighted_gpt_task() {
  Task task = gpt_task();
  Generator g{.seed = 6};
  for (training::Examples& b : task.batches) b.more = {rand({4, 8}, {}, g)};
  task.loss = [](nn::Module& model, const training::Examples& b) {
    return mean(cross_entropy(model(b.inputs), b.targets, {.reduction = Reduction::none}) * b.more.at(0));
  };
  return task;
}

struct Course {
  std::vector<double> numbers;
  Tensors weights;
  std::vector<int64_t> waits, allocations, launches;  // per step
};

Course train(Task task, const OptimizerCase& optimizer_case, training::StepOptions options, Device device) {
  task.model->to(device);
  for (training::Examples& b : task.batches) b = b.on(device);
  const auto optimizer = optimizer_case.make(task.model->parameters());
  training::Step step(*task.model, *optimizer, task.loss, options);
  manual_seed(17);
  gpu::synchronize(kCuda);
  Course course;
  int t = 0;
  for (const training::Examples& batch : task.batches) {
    const gpu::Recorder recorder;
    const training::StepResult r = step(batch, optimizer->lr() * (t < 3 ? 0.5 * (t + 1) : 0.9));
    course.waits.push_back(recorder.count(Kind::wait));
    course.allocations.push_back(recorder.count(Kind::allocation));
    course.launches.push_back(recorder.count(Kind::launch));
    course.numbers.push_back(r.loss);
    if (r.gradient_norm) course.numbers.push_back(*r.gradient_norm);
    ++t;
  }
  for (const Tensor& p : task.model->parameters()) course.weights.push_back(to(detach(p), kCpu));
  course.numbers.push_back(static_cast<double>(default_generator().offset));
  return course;
}

void check_same(const Course& a, const Course& b) {
  CHECK(a.numbers == b.numbers);
  REQUIRE(a.weights.size() == b.weights.size());
  for (size_t i = 0; i < a.weights.size(); ++i) {
    INFO("weight " << i);
    CHECK(same_bytes(a.weights[i], b.weights[i]));
  }
}

}  // namespace

TEST_CASE("a factor in a tensor is the same number, bit for bit") {
  for (Device device : {kCpu, kCuda})
    for (const OptimizerCase& c : kOptimizers)
      for (DType dtype : {DType::f32, DType::f64, DType::bf16}) {
        INFO(text(device, ' ', c.name, ' ', dtype));
        Tensors weights[2];
        for (int form : {0, 1}) {
          Generator g{.seed = 8};
          Tensors& p = weights[form];
          for (const Dims& shape : {Dims{5, 3}, Dims{3, 700}})
            p.push_back(require_grad(to(randn(shape, {}, g).to(dtype), device)));
          const auto optimizer = c.make(p);
          for (int t = 0; t < 3; ++t) {
            for (const Tensor& x : p) set_grad(x, to(randn(x.shape(), {}, g).to(dtype), device));
            const double norm = optim::grad_norm(p), factor = optim::clip_factor(norm, 0.25);
            if (form == 0) {
              optimizer->step(factor);
              continue;
            }
            const optim::ClipNumbers clip = optim::clip_numbers(p, 0.25);
            // A device adds in another order than the host.
            CHECK(clip.norm.item() == Approx(norm).epsilon(1e-14));
            CHECK(clip.factor.item() == optim::clip_factor(clip.norm.item(), 0.25));
            optimizer->step_scaled(to(from_vector<double>({factor}, {}), device));
          }
        }
        for (size_t i = 0; i < 2; ++i)
          CHECK(same_bytes(to(detach(weights[0][i]), kCpu), to(detach(weights[1][i]), kCpu)));
      }
  const Tensors p{require_grad(to(tensor({1., 2.}), kCuda))};
  CHECK(optim::clip_numbers(p, 1).norm.item() == 0);
  set_grad(p[0], to(from_vector<double>({NAN, 2}, {2}), kCuda));
  CHECK(std::isnan(optim::clip_numbers(p, 1).factor.item()));
  CHECK_THROWS_WITH(optim::clip_numbers(p, 0), Contains("max_norm is 0"));
  optim::Sgd sgd(p);
  CHECK_THROWS_WITH(sgd.step_scaled(tensor({1.0})),
                    Contains("sgd: the gradients' factor is f64 [1] on cpu, expected one f64 on cuda:0"));
}

TEST_CASE(
    "captured steps are the same steps, bit for bit; each waits once and takes no memory, those that are not, too") {
  const auto check_quiet = [](const Course& course) {
    for (size_t t = 2; t < course.waits.size(); ++t) {
      INFO("step " << t + 1);
      CHECK(course.waits[t] == 1);
      CHECK(course.allocations[t] == 0);
    }
  };
  const auto compare = [&](const std::function<Task()>& task, const OptimizerCase& optimizer,
                           training::StepOptions options) {
    INFO(optimizer.name);
    const Course eager = train(task(), optimizer, options, kCuda);
    check_quiet(eager);
    if (!optimizer.make({require_grad(zeros({1, 1}))})->replays()) return;
    options.captured = true;
    const Course captured = train(task(), optimizer, options, kCuda);
    check_same(eager, captured);
    check_quiet(captured);
    const int64_t tensors = std::ssize(task().batches[0].tensors());
    for (size_t t = 3; t < captured.launches.size(); ++t)
      CHECK(captured.launches[t] <= 1 + tensors);  // the graph, and one copy for each tensor of the batch
  };
  for (const OptimizerCase& optimizer : kOptimizers)
    compare([] { return gpt_task(); }, optimizer, {.limits = {.norm = 0.5}});
  compare(vit_task, kOptimizers[0], {.limits = {.norm = 0.5}, .accumulate = 2});
  compare(vit_task, kOptimizers[0], {.limits = {.norm = 0.5}});
  for (const int64_t parts : {1, 2})
    compare(mixed_vit_task, kOptimizers[0], {.limits = {.norm = 0.5}, .accumulate = parts});
  compare(weighted_gpt_task, kOptimizers[0], {.limits = {.norm = 0.5}});
  compare(vit_task, kOptimizers[3], {.limits = {.value = 0.1}});
  compare([] { return gpt_task(true); }, kOptimizers[0], {.limits = {.l2 = 0.01, .norm = 0.5}, .accumulate = 2});
  compare([] { return gpt_task(); }, kOptimizers[0], {.activations = DType::bf16});
}

TEST_CASE("steps are captured and replayed while a loader brings the next batches, in mixed precision too") {
  const std::string words = "the quick brown fox jumps over the lazy dog; 0123456789";
  const data::Text text(memory_bytes(words, "words"), 4);
  for (const nn::MixedPrecision precision :
       {nn::MixedPrecision{}, nn::MixedPrecision{.products = nn::Precision::bf16}}) {
    const auto train = [&](bool captured) {
      manual_seed(3);
      nn::TransformerOptions options = small();
      options.precision = precision;
      nn::Gpt model({.vocab = text.vocab(), .context = 8, .transformer = options});
      model.to(kCuda);
      optim::AdamW adamw(model.parameters(), {.lr = 0.01});
      training::Step step(model, adamw, training::cross_entropy_of, {.limits = {.norm = 1}, .captured = captured});
      data::TextLoader loader(text, {.rows = 4, .length = 8, .prefetch = 2, .device = kCuda});
      Course course;
      for (int t = 0; t < 8; ++t) {
        const data::TextBatch batch = loader.next();
        course.numbers.push_back(step({batch.x, batch.y}).loss);
      }
      for (const Tensor& p : model.parameters()) course.weights.push_back(to(detach(p), kCpu));
      return course;
    };
    check_same(train(false), train(true));
  }
}

TEST_CASE("a replayed step reads gradients times the scale that it was written down with") {
  const auto run = [](bool captured) {
    Tensor w = to(from_vector<float>({1, -2, 3}, {3}), kCuda);
    w.require_grad();
    optim::AdamW adamw({w}, {.lr = 0.1, .eps = 1});  // with a large eps the update depends on the size of the gradient
    const auto work = [&] {
      adamw.zero_grad();
      sum(w * w * w).backward();
      adamw.step(0.25);
    };
    gpu::Captured again(kCuda, work, [&] { return adamw.advance(); });
    for (int t = 0; t < 5; ++t) captured ? again() : work();
    return w.to_vector<float>();
  };
  CHECK(run(true) == run(false));
}

TEST_CASE("work that a graph cannot repeat is refused in one line") {
  Task task = gpt_task();
  task.model->to(kCuda);
  optim::Sgd sgd(task.model->parameters(), {.lr = 0.1});
  const training::Examples batch = task.batches[0];
  const auto third = [&](training::Objective loss, training::StepOptions options = {.captured = true}) {
    training::Step step(*task.model, sgd, std::move(loss), options);
    for (int i = 0; i < 2; ++i) step(batch);
    return thrown([&] { step(batch); });
  };
  const auto usual = training::cross_entropy_of;
  CHECK(third([&](nn::Module& m, const training::Examples& b) {
          const Tensor loss = usual(m, b);
          (void)loss.item();
          return loss;
        }) ==
        "captured step: it waits for the device, as reading a number of a tensor does, which a graph cannot do again");
  CHECK(third([&](nn::Module& m, const training::Examples& b) {
          return usual(m, b) * to(from_vector<float>({2}, {}), kCuda);
        }) == "captured step: it copies a tensor from the host to the device, which a graph cannot do again");
  Generator own{.seed = 99};
  CHECK(third([&](nn::Module& m, const training::Examples& b) {
          return usual(m, b) + mean(rand({2}, {DType::f32, kCuda}, own));
        }).starts_with("captured step: random numbers are drawn from seed 99 at "));
  // Afterwards the device still works, copies in both directions (through every buffer that copies use in turn), and
  // can capture again.
  CHECK_NOTHROW(gpu::synchronize(kCuda));
  for (int i = 0; i < 8; ++i)
    CHECK(to(from_vector<float>({2, 3}, {2}), kCuda).to_vector<float>() == std::vector<float>{2, 3});
  CHECK(third(usual).empty());

  optim::Lamb lamb(task.model->parameters());
  training::Step by_lamb(*task.model, lamb, usual, {.captured = true});
  CHECK_THROWS_WITH(by_lamb(batch), Contains("step: steps of lamb cannot be captured"));
  CHECK_THROWS_WITH(lamb.advance(), Contains("lamb: "));
  CHECK_THROWS_WITH(gpu::Captured(kCpu, [] {}), Contains("cpu"));
}

TEST_CASE("a captured step is captured again for other shapes, states, modes and tensors of frozen parameters") {
  const auto run = [](bool captured) {
    Task task = gpt_task();
    task.model->to(kCuda);
    nn::Module& frozen = *task.model->children().front();
    const Tensors all = task.model->parameters();
    optim::AdamW adamw(Tensors(all.begin() + std::ssize(frozen.parameters()), all.end()), {.lr = 0.01});
    training::Step step(*task.model, adamw, training::cross_entropy_of, {.limits = {.norm = 1}, .captured = captured});
    manual_seed(4);
    std::vector<double> losses;
    const auto some = [&](Generator g, int64_t rows) {
      for (int i = 0; i < 4; ++i) {
        const training::Examples b{randint(0, 11, {rows, 8}, kCpu, g), randint(0, 11, {rows, 8}, kCpu, g)};
        losses.push_back(step(captured ? b : b.on(kCuda)).loss);
      }
    };
    some({.seed = 1}, 4);
    some({.seed = 2}, 3);
    const TensorMap state = adamw.state_dict();
    TensorMap copy;
    for (const auto& [name, t] : state) copy.add(name, to(t, kCpu));
    some({.seed = 3}, 3);
    adamw.load_state_dict(copy);
    some({.seed = 4}, 3);
    Tensors before;  // keeps the old memory, so that the new parameters get other memory
    for (const Tensor& p : frozen.parameters()) before.push_back(detach(p));
    frozen.to(kCpu);
    for (const Tensor& p : frozen.parameters()) fill(p, 0.5);
    frozen.to(kCuda);
    some({.seed = 7}, 3);
    for (const auto& part : task.model->children()) part->eval();
    some({.seed = 5}, 3);
    task.model->eval();
    some({.seed = 6}, 3);
    return losses;
  };
  CHECK(run(true) == run(false));
}

TEST_CASE("wrong ids in a replay are told when the loss is read") {
  Task task = gpt_task();
  task.model->to(kCuda);
  optim::Sgd sgd(task.model->parameters(), {.lr = 0.1});
  training::Step step(*task.model, sgd, training::cross_entropy_of, {.captured = true});
  for (const training::Examples& b : task.batches) step(b);
  training::Examples bad = task.batches[0];
  bad.inputs = to(bad.inputs, kCuda);
  fill(as_strided(bad.inputs, {1}, {1}, 9), 12);
  CHECK_THROWS_WITH(
      step(bad), Contains("token: embedding: id 12 at element 9 of shape [4, 8] is outside of the table of size 11"));
  CHECK_NOTHROW(step(task.batches[1]));
}

TEST_CASE("work is captured: its memory, its random numbers, its updates") {
  const Tensor x = to(tensor({1., 2., 3.}), kCuda);
  Tensor result;
  int runs = 0;
  Tensors others;  // in memory that the captured work took and freed
  manual_seed(21);
  auto captured = std::make_unique<gpu::Captured>(kCuda, [&] {
    ++runs;
    result = x * 2. + rand({3}, {DType::f64, kCuda});
  });
  Generator expected{.seed = 21};
  for (int i = 0; i < 6; ++i) {
    CHECK(captured->replays() == (i >= 3));
    if (i == 4) manual_seed(22), expected = {.seed = 22};
    (*captured)();
    copy_into(x, to(x, kCpu) + 1.);  // for the next run
    const std::vector<double> drawn = rand({3}, {DType::f64}, expected).to_vector<double>(),
                              got = result.to_vector<double>();
    for (size_t k = 0; k < 3; ++k) CHECK(got[k] == 2 * (static_cast<double>(k) + 1 + i) + drawn[k]);
    CHECK(default_generator() == expected);
    for (int k = 0; k < 3; ++k) others.push_back(full({3}, 100, x.options()));
  }
  for (const Tensor& other : others) CHECK(other.to_vector<double>() == std::vector<double>(3, 100));
  CHECK(runs == 3);
  captured = nullptr;  // the result may outlive it
  CHECK_NOTHROW(result.to_vector<double>());

  // Updates may change after the capture, if their rule and number stay.
  const Tensor w = to(tensor({1., 2.}), kCuda), g = to(tensor({1., 1.}), kCuda);
  std::vector<kernels::Update> updates{{.gradient = g, .parameter = w, .state = {}, .rule = rules::Sgd{1}}};
  gpu::Captured step(
      kCuda, [&] { kernels::update.on(kCuda, updates); }, [&] { return updates; });
  for (int i = 0; i < 3; ++i) step();
  CHECK(w.to_vector<double>() == std::vector<double>{-2, -1});
  updates[0].rule = rules::Sgd{10};
  step();
  CHECK(w.to_vector<double>() == std::vector<double>{-12, -11});
  updates[0].rule = rules::Sign{1};
  CHECK_THROWS_WITH(step(), Contains("captured step: update 0 is by rule 2 now, 0 when it was written down"));
  updates.clear();
  CHECK_THROWS_WITH(step(), Contains("captured step: 0 updates now, 1 when it was written down"));
}

TEST_CASE("memory that is out in a capture is told, and nothing is freed that the graph may use") {
  gpu::synchronize(kCuda);
  gpu::empty_cache(kCuda);
  const int64_t lost = gpu::memory(kCuda).total - gpu::memory(kCuda).free - gpu::memory(kCuda).held;
  for (int64_t size : {int64_t{1} << 20, int64_t{200} << 10}) {  // large blocks and small ones
    int runs = 0;
    const Tensor x = full({3}, 2, {DType::f64, kCuda});
    gpu::Captured captured(kCuda, [&] {
      (void)(x + x);
      if (++runs < 3) return;
      std::vector<Tensor> all;  // the first tensor's block would be cached and then freed
      for (int64_t n = 1; n < 100; ++n) all = {}, all.push_back(empty({n * size}, {DType::u8, kCuda}));
    });
    captured(), captured();
    gpu::set_memory_limit(gpu::memory(kCuda).held + 3 * size, kCuda);
    CHECK_THROWS_WITH(captured(), Contains("allocate: out of memory: ") && Contains(", limit "));
    gpu::set_memory_limit(0, kCuda);
    CHECK(!captured.replays());
    CHECK((x + x).to_vector<double>() == std::vector<double>(3, 4));
    CHECK_NOTHROW(gpu::synchronize(kCuda));
  }
  gpu::Captured empties(kCuda, [] { gpu::empty_cache(kCuda); });
  for (int i = 0; i < 2; ++i) empties();
  CHECK_THROWS_WITH(empties(),
                    "captured step: it empties the cache of the device's memory, which a graph cannot do again");
  gpu::synchronize(kCuda);
  gpu::empty_cache(kCuda);
  CHECK(gpu::memory(kCuda).total - gpu::memory(kCuda).free - gpu::memory(kCuda).held == lost);
}

TEST_CASE("tables of angles are brought to a device once") {
  manual_seed(1);
  const Task task = gpt_task(true);
  task.model->to(kCuda);
  const Tensor ids = to(task.batches[0].inputs, kCuda);
  (void)(*task.model)(ids);
  const gpu::Recorder recorder;
  (void)(*task.model)(ids);
  CHECK(recorder.count(Kind::copy) == 0);
}

TEST_CASE("a text is continued with one wait for each id") {
  manual_seed(1);
  nn::Gpt model({.vocab = 11, .context = 8, .transformer = small()});
  model.eval();
  model.to(kCuda);
  gpu::synchronize(kCuda);  // waits for the copies of the weights
  Generator g{.seed = 2};
  for (double temperature : {0.0, 0.8}) {
    const gpu::Recorder recorder;
    (void)generate(model, from_vector<int64_t>({3, 1}, {2}), {.length = 9, .temperature = temperature, .top_k = 4}, g);
    CHECK(recorder.count(Kind::wait) == 9);
  }
}
