// The loss at step 1: a model that knows nothing gives every class about its share, ln(classes) in all.
#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "core/random.h"
#include "nn/gpt.h"
#include "nn/residual/all.h"
#include "tests/support/catch.h"
#include "training/fields.h"
#include "training/steps/step.h"

using namespace isonorm;
using namespace isonorm::training;

namespace {

constexpr int64_t kOutputs = 1000;

// The mean loss of random targets.
double initial_loss(const ModelOptions& options) {
  const NoGrad no_grad;
  manual_seed(1);
  const std::unique_ptr<nn::Module> model = options.make();
  Generator g{2, 0};
  const int64_t context = options.context();
  if (options.row().input == Input::images) {
    const int64_t side = options.shape().image;
    return cross_entropy_of(*model, {randn({64, side, side, 1}, {}, g), randint(0, kOutputs, {64}, kCpu, g)}).item();
  }
  const int64_t length = options.row().input == Input::pairs ? 2 * context : context;
  return cross_entropy_of(*model,
                          {randint(1, kOutputs, {16, length}, kCpu, g), randint(1, kOutputs, {16, context}, kCpu, g)})
      .item();
}

}  // namespace

TEST_CASE("the loss at step 1 is about ln V for all models and initialisations and connections and positions") {
  for (const ModelRow* row : kModels)
    for (const nn::Arrangement& connection : nn::kArrangements)
      for (const char* initialisation : nn::kInitialisationNames)
        for (const nn::Positions positions : {nn::Positions::learned, nn::Positions::rotary})
          for (const bool tied : {false, true}) {
            if (tied && !has(*row, "tied")) continue;
            ModelOptions options(*row, {.width = 64, .depth = 4, .heads = 4, .connection = connection});
            options.fit({.image = 14, .classes = kOutputs, .vocab = kOutputs});
            options.fit({{"context", 8}, {"tied", tied}});
            options.set({"initialisation", std::string(initialisation)});
            options.transformer().positions = positions;
            // ResiDual's head reads the sum of two normalised rows, so its logits have twice the variance.
            const double allowed = connection == nn::kResiDual ? 1 : 0.35;
            INFO(row->name << ' ' << connection.name << ' ' << initialisation << ' ' << name_of(positions)
                           << (tied ? " tied" : ""));
            CHECK(initial_loss(options) < std::log(kOutputs) + allowed);
          }
  for (const bool tied : {false, true}) {
    ModelOptions options = ModelOptions::preset(kGpt, "9m");
    options.fit({{"vocab", kOutputs}, {"context", 32}, {"tied", tied}});
    CHECK(initial_loss(options) < std::log(kOutputs) + 0.35);
  }
}

TEST_CASE("the tables of a model with a tied head have standard deviation 0.02") {
  for (const char* name : nn::kInitialisationNames)
    for (const bool tied : {false, true}) {
      ModelOptions options(kGpt, {.width = 64, .depth = 1}, {{"vocab", kOutputs}, {"context", 100}, {"tied", tied}});
      options.set({"initialisation", std::string(name)});
      const bool by_layer = options.transformer().initialisation == nn::Initialisation::by_layer;
      const double expected = tied ? 0.02 : by_layer ? 1 : std::sqrt(0.4);
      const std::unique_ptr<nn::Module> model = options.make();
      for (const char* table : {"token.weight", "position.weight"}) {
        const Tensor x = model->state_dict().at(table).to(DType::f64);
        const double deviation = std::sqrt(mean(x * x).item());
        INFO(name << (tied ? ", tied, " : ", ") << table << ": " << deviation);
        // For n normal numbers the standard error of the deviation is the deviation divided by sqrt(2n).
        CHECK(std::abs(deviation / expected - 1) < 5 / std::sqrt(2 * static_cast<double>(x.numel())));
      }
    }
}
