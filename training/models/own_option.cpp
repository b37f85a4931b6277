#include "training/models/own_option.h"

#include <algorithm>

namespace isonorm::training {
namespace {

template <class Keep> std::string names_of(const char* separator, Keep keep) {
  std::string names;
  for (const ModelRow* row : kModels)
    if (keep(*row)) names += text(names.empty() ? "" : separator, row->name);
  return names;
}

}  // namespace

std::string OwnOption::word() const {
  std::string word = name;
  std::replace(word.begin(), word.end(), '_', '-');
  return word;
}

std::string OwnOption::value_in(const TrainingOptions& o) const { return flag ? text(o.*flag) : text(o.*number); }

bool has(const ModelRow& row, std::string_view option) {
  std::any options = row.options();
  TrainingOptions o;
  ModelShape shape;
  OptionVisitor visitor;
  row.visit(options, o, shape, visitor);
  return std::any_of(visitor.options.begin(), visitor.options.end(),
                     [&](const NamedOption& known) { return known.name == option; });
}

std::string models_with(std::string_view option, const char* separator) {
  return names_of(separator, [&](const ModelRow& row) { return has(row, option); });
}

std::string models_with(Input input, const char* separator) {
  return names_of(separator, [&](const ModelRow& row) { return row.input == input; });
}

}  // namespace isonorm::training
