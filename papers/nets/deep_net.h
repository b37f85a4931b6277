// Internal: The network whose gradients and stream the papers on connections analyse, at its initial weights: one
// width throughout, ReLU, one head, no biases, weights by Xavier's normal distribution, queries and keys 0, so that attention
// is the mean of all rows (Xiong et al., 2002.04745, section 3.3 and appendix B). f64.
#pragma once

#include <string>
#include <vector>

#include "nn/residual/all.h"
#include "nn/transformer.h"
#include "reports/figure.h"
#include "reports/text_table.h"

namespace isonorm::papers {

constexpr int64_t kNetWidth = 64, kNetExamples = 4, kNetRows = 8;

// Rows [examples, rows, width] of standard normal numbers and a class for each, of `width` many. The same for a seed.
struct NetBatch {
  explicit NetBatch(uint64_t seed, int64_t width = kNetWidth);
  Tensor rows, labels;
};

class DeepNet : public nn::Module {
 public:
  // Draws weights that `seed` alone decides.
  DeepNet(const nn::Arrangement& connection, int64_t depth, uint64_t seed, NormKind norm = NormKind::layer,
          int64_t width = kNetWidth);
  // One of other sizes, f32, with queries and keys as they are drawn, by the default generator.
  DeepNet(const nn::TransformerOptions& options, int64_t classes);
  // Logits [examples * rows, classes].
  Tensor forward(const Tensor& rows) override;
  // The stream [examples, rows, width] at first and behind each block: depth + 1.
  std::vector<Tensor> streams(const Tensor& rows);

  double loss_and_gradients(const NetBatch& batch);
  // The norm of the gradient of the MLP's second map, in block `block` from 0.
  double gradient_norm(int64_t block) const;

 private:
  nn::TransformerStack& blocks_;
  nn::Connection& last_;
  nn::Linear& head_;
};

// One connection in an experiment: how it is called and drawn.
struct NetKind {
  const char *name, *css;
  nn::Arrangement connection;
  NormKind norm = NormKind::layer;
};

using Curve = reports::ChartLine;  // a number for each depth, block or step

// The steps `by`, 2 `by`, ... up to `last`.
std::vector<double> every(int64_t by, int64_t last);

// The least squares slope of log y over log x, of those from index `from` on. Throws where two are not left.
double log_slope(const std::vector<double>& x, const std::vector<double>& y, size_t from);

// The curves as a table, a column for each of `at`, which are counts of `axis`; and as a chart over them in order, in
// decades.
reports::TextTable curve_table(const std::string& heading, const std::string& caption, const char* axis,
                               const std::vector<double>& at, const std::vector<Curve>& curves);
reports::Figure curve_figure(const char* name, const std::string& heading, const std::string& caption, const char* axis,
                             const std::vector<double>& at, const std::vector<Curve>& curves);

}  // namespace isonorm::papers
