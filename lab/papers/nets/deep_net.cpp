#include "lab/papers/nets/deep_net.h"

#include <algorithm>
#include <cmath>

#include "core/printed.h"
#include "isonorm.h"

namespace isonorm::papers {
namespace {

nn::TransformerOptions options_of(const nn::Arrangement& connection, int64_t depth, NormKind norm, int64_t width) {
  nn::TransformerOptions o{.width = width,
                           .depth = depth,
                           .heads = 1,
                           .mlp_width = width,
                           .activation = nn::Activation::relu,
                           .positions = nn::Positions::none,
                           .bias = false,
                           .norm = norm,
                           .connection = connection};
  return o;
}

nn::TransformerOptions by_xavier(nn::TransformerOptions o) {
  if (!o.connection.initialise)
    o.connection.initialise = [](const nn::BlockWeights& w, const nn::BlockPlace&) { nn::initialise_scaled(w, 1); };
  return o.complete();
}

}  // namespace

NetBatch::NetBatch(uint64_t seed, int64_t width) {
  Generator g{.seed = seed + 1000};
  rows = randn({kNetExamples, kNetRows, width}, {DType::f64}, g);
  labels = randint(0, width, {kNetExamples * kNetRows}, kCpu, g);
}

DeepNet::DeepNet(const nn::TransformerOptions& o, int64_t classes)
    : blocks_(add("blocks", nn::TransformerStack(by_xavier(o)))),
      last_(add("norm", o.connection.last(o.width, o.last_norm()))),
      head_(add("head", nn::Linear(o.width, classes, {.bias = o.bias}))) {
  copy_into(detach(head_.weight), nn::init::xavier_normal(head_.weight.shape()));
}

DeepNet::DeepNet(const nn::Arrangement& connection, int64_t depth, uint64_t seed, NormKind norm, int64_t width)
    : DeepNet((manual_seed(seed), options_of(connection, depth, norm, width)), width) {
  for (const nn::NamedParameter& p : named_parameters())
    if (p.name.ends_with("qkv.weight")) fill(detached::narrow(detach(p.tensor), 0, 0, 2 * width), 0);
  to(DType::f64);
}

Tensor DeepNet::forward(const Tensor& rows) {
  nn::Residual r{rows, {}};
  blocks_(r);
  return reshape(head_(last_.rows(r)), {rows.size(0) * rows.size(1), head_.weight.size(0)});
}

std::vector<Tensor> DeepNet::streams(const Tensor& rows) {
  nn::Residual r{rows, {}};
  std::vector<Tensor> all{r.sum};
  for (nn::TransformerBlock* block : blocks_) {
    (*block)(r);
    all.push_back(detach(r.settle()));
  }
  return all;
}

double DeepNet::loss_and_gradients(const NetBatch& batch) {
  const Tensor loss = cross_entropy((*this)(batch.rows), batch.labels);
  backward(loss);
  return loss.item();
}

double DeepNet::gradient_norm(int64_t block) const {
  const Tensor weight = state_dict().at(text("blocks.", block, ".mlp.fc2.weight"));
  return std::sqrt(sum(square(weight.grad())).item());
}

double log_slope(const std::vector<double>& x, const std::vector<double>& y, size_t from) {
  check(x.size() == y.size() && from + 2 <= x.size(), "log_slope: ", x.size(), " and ", y.size(), " numbers from ",
        from, ", expected two at least");
  const double n = static_cast<double>(x.size() - from);
  double mx = 0, my = 0, xy = 0, xx = 0;
  for (size_t i = from; i < x.size(); ++i) mx += std::log(x[i]) / n, my += std::log(y[i]) / n;
  for (size_t i = from; i < x.size(); ++i) {
    xy += (std::log(x[i]) - mx) * (std::log(y[i]) - my);
    xx += (std::log(x[i]) - mx) * (std::log(x[i]) - mx);
  }
  return xy / xx;
}

std::vector<double> every(int64_t by, int64_t last) {
  std::vector<double> steps;
  for (int64_t step = by; step <= last; step += by) steps.push_back(static_cast<double>(step));
  return steps;
}

reports::TextTable curve_table(const std::string& heading, const std::string& caption, const char* axis,
                               const std::vector<double>& at, const std::vector<Curve>& curves) {
  reports::TextTable table{.heading = heading, .columns = {""}, .caption = caption};
  for (double x : at) table.columns.push_back(text(axis, " ", x));
  for (const Curve& c : curves) {
    table.rows.push_back({{c.name}});
    for (double y : c.values) table.rows.back().push_back(reports::printed_cell("%.3g", y));
  }
  return table;
}

reports::Figure curve_figure(const char* name, const std::string& heading, const std::string& caption, const char* axis,
                             const std::vector<double>& at, const std::vector<Curve>& curves) {
  reports::Chart chart{
      .title = heading, .log_scale = true, .steps = static_cast<int>(at.size()), .axis = axis, .width = 660};
  for (double x : at) chart.ticks.push_back(text(x));
  double low = INFINITY, high = 0;
  for (const Curve& c : curves)
    for (double y : c.values) low = std::min(low, y), high = std::max(high, y);
  chart.lines = curves;
  chart.low = std::pow(10, std::floor(std::log10(low))), chart.high = std::pow(10, std::ceil(std::log10(high)));
  if (!(chart.low < chart.high)) chart.high = 10 * chart.low;
  return {.name = name, .heading = heading, .panels = {reports::panel_of(std::move(chart))}, .caption = caption};
}

}  // namespace isonorm::papers
