#include "lab/papers/rivals.h"

#include "core/printed.h"
#include "core/random.h"
#include "lab/papers/nets/deep_net.h"

namespace isonorm::papers {

Rival::Rival(const char* name, const char* css, std::unique_ptr<nn::Module> made, Device device,
             const optim::AdamOptions& options, training::Objective loss)
    : name(name),
      css(css),
      model((made->to(device), std::move(made))),
      optimizer(model->parameters(), options),
      step(*model, optimizer, std::move(loss)) {}

void race(const ExperimentOptions& o, const Rivals& all, int64_t steps,
          const std::function<training::Examples(int64_t)>& batch, const std::function<double(int64_t)>& rate) {
  for (int64_t t = 0; t < steps; ++t) {
    o.go_on();
    const training::Examples examples = batch(t);
    for (size_t i = 0; i < all.size(); ++i) {
      Rival& rival = *all[(i + static_cast<size_t>(t)) % all.size()];
      manual_seed(o.seed + static_cast<uint64_t>(t));
      rival.steps.add([&] { return rival.step(examples, rate(t)).loss; });
    }
    if (t % 50 == 0) o.tell(text("step ", t, " of ", steps));
  }
}

std::vector<reports::TextCell> row_of(const Rival& rival, double wrong, const Rival& reference) {
  return {{rival.name},
          {percent(wrong), {}, 100 * wrong},
          reports::printed_cell("%.3f", rival.steps.means(kShownSteps).back()),
          ratio_cell(rival.steps.time_ratio(reference.steps), 3)};
}

reports::Figure losses_of(const Rivals& all, const char* heading, const char* what_is_the_same) {
  std::vector<Curve> curves;
  for (const auto& rival : all) curves.push_back({rival->name, rival->css, rival->steps.means(kShownSteps)});
  return curve_figure("loss", heading, text("Means over ", kShownSteps, " steps, of the same ", what_is_the_same, "."),
                      "step", every(kShownSteps, std::ssize(all[0]->steps.losses)), curves);
}

std::string percent(double share) { return printed("%.2f", 100 * share); }

}  // namespace isonorm::papers
