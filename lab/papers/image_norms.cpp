// Norms in a convolutional network: their test errors after training on the same batches, and the time of their steps.
#include <algorithm>
#include <cmath>

#include "core/printed.h"
#include "io/sha256.h"
#include "isonorm.h"
#include "lab/papers/experiment.h"
#include "lab/papers/images/conv_pool.h"
#include "lab/papers/images/zca.h"
#include "lab/papers/rivals.h"

namespace isonorm::papers {
namespace {

// The published errors are for CIFAR-10, in percent. The published times are times of an epoch divided by the time
// without a norm (1910.07467, table 8: 21, 38, 23, 39, 31 and 30 seconds).
struct Method {
  ConvNorm norm;
  const char *name, *css;
  const char *published_error, *published_time;
};
constexpr Method kMethods[] = {{ConvNorm::none, "no norm", "plain", "8.96", "1"},
                               {ConvNorm::batch, "BatchNorm", "reference", "8.25", "1.81"},
                               {ConvNorm::weight, "weight norm", "negative", "8.28", "1.10"},
                               {ConvNorm::layer, "LayerNorm", "other", "10.49", "1.86"},
                               {ConvNorm::instance, "LayerNorm by channel", "isometric", "-", "-"},
                               {ConvNorm::rms, "RMSNorm by channel", "rms", "8.83", "1.48"},
                               {ConvNorm::prms, "RMSNorm of 12.5 %", "crms", "10.37", "1.43"}};
constexpr size_t kCount = std::size(kMethods), kLayer = 3, kRms = 5;

struct Scale {
  int64_t width, steps, batch, tested;
};

// The fraction of wrong predictions.
double error_of(nn::Module& model, Device device, const data::LabelledImages& set, int64_t images, const Zca& zca,
                const data::PixelScale& scale) {
  const NoGrad no_grad;
  model.eval();
  int64_t wrong = 0;
  for (int64_t begin = 0; begin < images; begin += 500) {
    const data::Batch b = data::slice_batch(set, begin, std::min<int64_t>(500, images - begin), scale);
    const std::vector<int64_t> answers = argmax(model(to(zca.whiten(b.images), device))).to_vector<int64_t>(),
                               labels = b.labels.to_vector<int64_t>();
    for (size_t i = 0; i < labels.size(); ++i) wrong += answers[i] != labels[i];
  }
  return static_cast<double>(wrong) / static_cast<double>(images);
}

}  // namespace

ExperimentResult image_norms(const ExperimentOptions& o) {
  const Scale s = o.full ? Scale{24, 1000, 64, 10000} : Scale{8, 200, 64, 4000};
  ExperimentResult r;
  const data::FashionMnist images = data::FashionMnist::load(o.data);
  r.data_sha256 = io::sha256_of_files(data::FashionMnist::files(o.data));
  const data::PixelScale scale{.mean = {0.5}, .std = {128.0 / 255}};  // near (pixel - 127.5) / 128
  const Zca zca = Zca::fit(images.train, {.eps = 0.1, .images = 5000, .scale = scale});
  data::Loader loader(images.train, {.rows = s.batch, .seed = o.seed, .scale = scale, .prefetch = 0});
  const auto batch_of = [&](int64_t step) {
    const data::Batch b = loader.batch(step);
    return training::Examples{zca.whiten(b.images), b.labels}.on(o.device);
  };
  Rivals all;
  const Tensor first = to(batch_of(0).inputs, kCpu);
  for (const Method& m : kMethods) {
    manual_seed(o.seed);
    auto model =
        std::make_unique<ConvPoolCnn>(ConvPoolOptions{.image = 28, .channels = 1, .width = s.width, .norm = m.norm});
    model->initialise(first);
    all.push_back(std::make_unique<Rival>(m.name, m.css, std::move(model), o.device, optim::AdamOptions{}));
  }
  race(o, all, s.steps, batch_of, [](int64_t) { return 3e-3; });

  reports::TextTable table{
      .heading = "Test errors and times of ConvPool-CNN-C",
      .columns = {"norm", "error, %", "loss at the end", "time of a step", "published error, %", "published time"},
      .caption =
          text("Fashion-MNIST, the first ", s.tested, " test images, after ", s.steps, " steps of Adam at 0.003 with ",
               s.batch, " images each, whitened, with noise and dropout; ", s.width, " and ", 2 * s.width,
               " channels. Times are medians of the ratio to the step without a norm on the same batch, with their "
               "intervals of 99.8 %; f32, ",
               machine_text(), ", ", o.device,
               ". Published: CIFAR-10 with 96 and 192 channels after 200 epochs, time of an epoch; the paper does not "
               "say which entries its LayerNorm averages.")};
  std::vector<double> errors, times;
  for (size_t i = 0; i < kCount; ++i) {
    const Method& m = kMethods[i];
    errors.push_back(error_of(*all[i]->model, o.device, images.test, s.tested, zca, scale));
    table.rows.push_back(row_of(*all[i], errors.back(), *all[0]));
    times.push_back(*table.rows.back()[3].value);
    for (const char* published : {m.published_error, m.published_time}) table.rows.back().push_back({published});
  }
  const double noise = two_standard_errors(errors[kRms], errors[kLayer], s.tested);
  r.confirmed = errors[kRms] <= errors[kLayer] + noise;
  r.measured =
      text("RMSNorm's test error is ", percent(errors[kRms]), " %, LayerNorm's ", percent(errors[kLayer]),
           " %, the error without a norm ", percent(errors[0]), " %; a step takes ", printed("%.2f", times[kRms]),
           " and ", printed("%.2f", times[kLayer]), " times as long as without a norm.");
  r.refuted = text("an error of RMSNorm above LayerNorm's by more than two standard errors, ", percent(noise), " %");
  r.tables = {std::move(table)};
  r.figures = {losses_of(all, "Training losses of ConvPool-CNN-C", "batches, noise and dropout")};
  return r;
}

}  // namespace isonorm::papers
