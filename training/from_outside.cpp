#include "training/from_outside.h"

#include <algorithm>

#include "nn/residual/all.h"

namespace isonorm::training {

bool listed(const OptimizerRow& row) {
  const std::span<const OptimizerRow> all = optimizers();
  return std::any_of(all.begin(), all.end(), [&](const OptimizerRow& o) { return &o == &row; });
}

bool listed(const ModelRow& row) {
  return std::find(std::begin(kModels), std::end(kModels), &row) != std::end(kModels);
}

bool listed(const nn::Arrangement& row) {
  return std::find(std::begin(nn::kArrangements), std::end(nn::kArrangements), row) != std::end(nn::kArrangements);
}

bool from_outside(const TrainingOptions& o) {
  return !listed(*o.model) || !listed(*o.optimizer) || !listed(o.connection);
}

std::string rows_text(const TrainingOptions& o) {
  return text(name_and_origin(*o.optimizer), listed(*o.model) ? "" : text(", model ", name_and_origin(*o.model)),
              listed(o.connection) ? "" : text(", connections ", name_and_origin(o.connection)));
}

void check_rows(const TrainingOptions& o) {
  check(o.model && o.optimizer, "training: there is no ", o.model ? "optimizer" : "model", ", expected a row of one");
  const ModelRow& m = *o.model;
  check(m.name && m.title && m.noun, "model: a row lacks its name, title or noun");
  check(m.options && m.options_of && m.visit && m.stream_rows && m.more_blocks && m.enters && m.make, "model: the row ",
        m.name, " lacks what row_of() makes");
  check(o.optimizer->name && o.optimizer->make && o.optimizer->note, "optimizer: the row ",
        o.optimizer->name ? o.optimizer->name : "without a name", " lacks its name, make or note");
  check(o.connection.name && o.connection.block && o.connection.last, "connections: the row ",
        o.connection.name ? o.connection.name : "without a name", " lacks its name, block or last");
}

}  // namespace isonorm::training
