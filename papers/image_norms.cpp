// Norms in a convolutional network: what test errors they reach from the same batches, and what time their steps take.
#include <algorithm>
#include <cmath>
#include <memory>

#include "autograd/grad_mode.h"
#include "autograd/ops/reduce.h"
#include "core/printed.h"
#include "core/random.h"
#include "core/system/blas_info.h"
#include "core/system/parallel.h"
#include "data/fashion_mnist.h"
#include "io/sha256.h"
#include "optim/adam.h"
#include "papers/all.h"
#include "papers/images/conv_pool.h"
#include "papers/images/zca.h"
#include "papers/nets/deep_net.h"
#include "papers/timing/turns.h"
#include "training/step.h"

namespace isonorm::papers {
namespace {

// The published error is CIFAR-10's in percent, and the time that of an epoch divided by the one without a norm
// (1910.07467, table 8: 21, 38, 23, 39, 31 and 30 seconds); null: not there.
struct Method {
  ConvNorm norm;
  const char *name, *css;
  const char *published_error, *published_time;
};
constexpr Method kMethods[] = {{ConvNorm::none, "no norm", "plain", "8.96", "1"},
                               {ConvNorm::batch, "BatchNorm", "reference", "8.25", "1.81"},
                               {ConvNorm::weight, "weight norm", "negative", "8.28", "1.10"},
                               {ConvNorm::layer, "LayerNorm", "other", "10.49", "1.86"},
                               {ConvNorm::instance, "LayerNorm by channel", "isometric", nullptr, nullptr},
                               {ConvNorm::rms, "RMSNorm by channel", "rms", "8.83", "1.48"},
                               {ConvNorm::prms, "RMSNorm of 12.5 %", "crms", "10.37", "1.43"}};
constexpr size_t kCount = std::size(kMethods), kLayer = 3, kRms = 5;

struct Scale {
  int64_t width, steps, batch, tested;
};

// One model in training, on batches that all are given alike.
class Trainee {
 public:
  Trainee(const Method& m, const ExperimentOptions& o, const Scale& s, const Tensor& first) : device_(o.device) {
    manual_seed(o.seed);
    model_ =
        std::make_unique<ConvPoolCnn>(ConvPoolOptions{.image = 28, .channels = 1, .width = s.width, .norm = m.norm});
    model_->initialise(first);
    model_->to(device_);
    optimizer_ = std::make_unique<optim::Adam>(model_->parameters(), optim::AdamOptions{.lr = 3e-3});
    step_ = std::make_unique<training::Step>(*model_, *optimizer_);
  }

  void step(const training::Examples& batch, uint64_t seed) {
    manual_seed(seed);  // the same noise and dropout for all
    steps.add([&] { return (*step_)(batch).loss; });
  }

  // The share of wrong answers.
  double error(const data::LabelledImages& set, int64_t images, const Zca& zca, const data::PixelScale& scale) {
    const NoGrad no_grad;
    model_->eval();
    int64_t wrong = 0;
    for (int64_t begin = 0; begin < images; begin += 500) {
      const data::Batch b = data::slice_batch(set, begin, std::min<int64_t>(500, images - begin), scale);
      const std::vector<int64_t> answers = argmax((*model_)(to(zca.whiten(b.images), device_))).to_vector<int64_t>(),
                                 labels = b.labels.to_vector<int64_t>();
      for (size_t i = 0; i < labels.size(); ++i) wrong += answers[i] != labels[i];
    }
    model_->train();
    return static_cast<double>(wrong) / static_cast<double>(images);
  }

  TimedSteps steps;

 private:
  Device device_;
  std::unique_ptr<ConvPoolCnn> model_;
  std::unique_ptr<optim::Adam> optimizer_;
  std::unique_ptr<training::Step> step_;
};

std::string percent(double x) { return printed("%.2f", 100 * x); }

}  // namespace

ExperimentResult image_norms(const ExperimentOptions& o) {
  const Scale s = o.full ? Scale{24, 1000, 64, 10000} : Scale{8, 200, 64, 4000};
  constexpr size_t kShown = 20;  // means of losses over so many steps
  ExperimentResult r;
  const data::FashionMnist images = data::FashionMnist::load(o.data);
  r.data_sha256 = io::sha256_of_files(data::FashionMnist::files(o.data));
  const data::PixelScale scale{.mean = 0.5, .std = 128.0 / 255};  // near (pixel - 127.5) / 128
  const Zca zca = Zca::fit(images.train, {.eps = 0.1, .images = 5000, .scale = scale});
  data::Loader loader(images.train, {.rows = s.batch, .seed = o.seed, .scale = scale, .prefetch = 0});
  const auto batch_of = [&](int64_t step) {
    const data::Batch b = loader.batch(step);
    return training::Examples{zca.whiten(b.images), b.labels}.on(o.device);
  };
  std::vector<std::unique_ptr<Trainee>> all;
  const Tensor first = batch_of(0).inputs;
  for (const Method& m : kMethods) all.push_back(std::make_unique<Trainee>(m, o, s, to(first, kCpu)));
  for (int64_t step = 0; step < s.steps; ++step) {
    o.go_on();
    const training::Examples batch = batch_of(step);
    for (size_t i = 0; i < kCount; ++i)  // each round begins with another one
      all[(i + static_cast<size_t>(step)) % kCount]->step(batch, o.seed + static_cast<uint64_t>(step));
    if (step % 50 == 0 && o.progress && !o.progress(text("step ", step, " of ", s.steps)))
      return r.interrupted = true, r;
  }

  const BlasInfo blas = blas_info();
  reports::TextTable table{
      .heading = "Test errors and times of ConvPool-CNN-C",
      .columns = {"norm", "error, %", "loss at the end", "time of a step", "published error, %", "published time"},
      .caption =
          text("Fashion-MNIST, the first ", s.tested, " test images, behind ", s.steps, " steps of Adam at 0.003 with ",
               s.batch, " images each, whitened, with noise and dropout; ", s.width, " and ", 2 * s.width,
               " channels. Times are medians of the ratio to the step without a norm on the same "
               "batch, with their intervals of 99.8 %; f32, ",
               num_threads(), " threads, ", blas.version, " ", blas.core, ", ", o.device,
               ". Published: CIFAR-10 with 96 and 192 channels behind 200 epochs, time of an epoch; which entries its "
               "LayerNorm "
               "averages is not said.")};
  std::vector<Curve> curves;
  std::vector<double> errors, times, at;
  for (int64_t step = kShown; step <= s.steps; step += kShown) at.push_back(static_cast<double>(step));
  for (size_t i = 0; i < kCount; ++i) {
    const Method& m = kMethods[i];
    Trainee& t = *all[i];
    Curve curve{m.name, m.css, t.steps.means(kShown)};
    const Median q = t.steps.time_ratio(all[0]->steps);
    errors.push_back(t.error(images.test, s.tested, zca, scale)), times.push_back(q.median);
    table.rows.push_back({{m.name},
                          {percent(errors.back()), {}, 100 * errors.back()},
                          {printed("%.3f", curve.values.back()), {}, curve.values.back()},
                          {printed("%.2f (%.2f to %.2f)", q.median, q.low, q.high), {}, q.median},
                          {m.published_error ? m.published_error : "-"},
                          {m.published_time ? m.published_time : "-"}});
    curves.push_back(std::move(curve));
  }
  const double noise = two_standard_errors(errors[kRms], errors[kLayer], s.tested);
  r.confirmed = errors[kRms] <= errors[kLayer] + noise;
  r.measured = text("RMSNorm's test error is ", percent(errors[kRms]), " %, LayerNorm's ", percent(errors[kLayer]),
                    " %, that without a norm ", percent(errors[0]), " %; a step takes ", printed("%.2f", times[kRms]),
                    " and ", printed("%.2f", times[kLayer]), " times as long as without a norm.");
  r.refuted = text("an error of RMSNorm above LayerNorm's by more than two standard errors, ", percent(noise), " %");
  r.tables = {std::move(table)};
  r.figures = {curve_figure("loss", "Training losses of ConvPool-CNN-C",
                            text("Means over ", kShown, " steps, of the same batches, noise and dropout."), "step", at,
                            curves)};
  return r;
}

}  // namespace isonorm::papers
