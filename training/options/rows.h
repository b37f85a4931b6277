// Rows of constant tables, found by their names.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "core/error.h"

namespace isonorm::training {

template <class Row> const char* row_name(const Row& row) { return row.name; }
template <class Row> const char* row_name(const Row* row) { return row->name; }

// The names as text: "sgd, momentum".
template <class Rows> std::string names_of(const Rows& rows, const char* separator = ", ") {
  std::string names;
  for (const auto& row : rows) names += text(names.empty() ? "" : separator, row_name(row));
  return names;
}

// Finds the row with this name. Returns the end of the table if there is none.
template <class Rows> auto row_at(const Rows& rows, std::string_view name) {
  return std::find_if(std::begin(rows), std::end(rows), [&](const auto& row) { return row_name(row) == name; });
}

// Finds the row with this name. If there is none, throws an error about `what` that lists all names.
template <class Rows> const auto& row_named(const Rows& rows, std::string_view name, const char* what) {
  const auto at = row_at(rows, name);
  check(at != std::end(rows), what, ": none is called '", name, "'; there are ", names_of(rows));
  return *at;
}

}  // namespace isonorm::training
