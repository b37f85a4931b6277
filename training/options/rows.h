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

// The row with this name, or the end if there is none.
template <class Rows> auto row_at(const Rows& rows, std::string_view name) {
  return std::find_if(std::begin(rows), std::end(rows), [&](const auto& row) { return row_name(row) == name; });
}

// The row with this name. Throws if there is none, as `what`, listing all names.
template <class Rows> const auto& row_named(const Rows& rows, std::string_view name, const char* what) {
  const auto at = row_at(rows, name);
  check(at != std::end(rows), what, ": none is called '", name, "'; there are ", names_of(rows));
  return *at;
}

}  // namespace isonorm::training
