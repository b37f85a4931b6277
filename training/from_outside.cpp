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
  return !listed(o.model.row()) || !listed(*o.optimizer) || !listed(o.model.transformer().connection);
}

std::string rows_text(const TrainingOptions& o) {
  const ModelRow& model = o.model.row();
  const nn::Arrangement& connection = o.model.transformer().connection;
  return text(name_and_origin(*o.optimizer), listed(model) ? "" : text(", model ", name_and_origin(model)),
              listed(connection) ? "" : text(", connections ", name_and_origin(connection)));
}

void check_rows(const TrainingOptions& o) {
  check(o.optimizer, "training: there is no optimizer, expected a row of one");
  const nn::Arrangement& connection = o.model.transformer().connection;
  check(o.optimizer->name && o.optimizer->make && o.optimizer->note, "optimizer: the row ",
        o.optimizer->name ? o.optimizer->name : "without a name", " lacks its name, make or note");
  check(connection.name && connection.block && connection.last, "connections: the row ",
        connection.name ? connection.name : "without a name", " lacks its name, block or last");
}

}  // namespace isonorm::training
