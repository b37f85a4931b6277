// Internal: the network whose gradients and stream the papers on connections analyse at its initial weights. All widths
// are equal; ReLU, one head, no biases, Xavier normal weights. Queries and keys are 0, so attention is the mean over
// the rows (Xiong et al., 2002.04745, section 3.3 and appendix B). f64.
#pragma once

#include <string>
#include <vector>

#include "nn/residual/all.h"
#include "nn/transformer.h"
#include "reports/figure.h"
#include "reports/text_table.h"

namespace isonorm::papers {

constexpr int64_t kNetWidth = 64, kNetExamples = 4, kNetRows = 8;

// rows [examples, rows, width], standard normal, and labels: for each row a class below `width`. Depends only on the
// seed.
struct NetBatch {
  explicit NetBatch(uint64_t seed, int64_t width = kNetWidth);
  Tensor rows, labels;
};

class DeepNet : public nn::Module {
 public:
  // The weights depend only on `seed`.
  DeepNet(const nn::Arrangement& connection, int64_t depth, uint64_t seed, NormKind norm = NormKind::layer,
          int64_t width = kNetWidth);
  // Other sizes: f32, with random queries and keys, from the default generator.
  DeepNet(const nn::TransformerOptions& options, int64_t classes);
  // Logits [examples * rows, classes].
  Tensor forward(const Tensor& rows) override;
  // The stream [examples, rows, width] before the first block and after each block: depth + 1 tensors.
  std::vector<Tensor> streams(const Tensor& rows);

  double loss_and_gradients(const NetBatch& batch);
  // Gradient norm of the MLP's second weight in block `block`, counted from 0.
  double gradient_norm(int64_t block) const;

 private:
  nn::TransformerStack& blocks_;
  nn::Connection& last_;
  nn::Linear& head_;
};

// One connection in an experiment, with its name and its style in figures.
struct NetKind {
  const char *name, *css;
  nn::Arrangement connection;
  NormKind norm = NormKind::layer;
};

using Curve = reports::ChartLine;  // one value for each depth, block or step

// The steps `by`, 2 `by`, ... up to `last`.
std::vector<double> every(int64_t by, int64_t last);

// Returns the least-squares slope of log y over log x, from index `from` on. Throws if fewer than two values are left.
double log_slope(const std::vector<double>& x, const std::vector<double>& y, size_t from);

// The curves as a table with one column for each entry of `at` (a number of `axis`), and as a chart with a logarithmic
// scale.
reports::TextTable curve_table(const std::string& heading, const std::string& caption, const char* axis,
                               const std::vector<double>& at, const std::vector<Curve>& curves);
reports::Figure curve_figure(const char* name, const std::string& heading, const std::string& caption, const char* axis,
                             const std::vector<double>& at, const std::vector<Curve>& curves);

}  // namespace isonorm::papers
