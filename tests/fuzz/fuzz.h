// The body of every fuzz target: a reader must return or throw Error; anything else aborts the run.
#pragma once

#include <cstdlib>

#include "core/error.h"
#include "core/system/file.h"

template <class F> int fuzz(const uint8_t* data, size_t size, F&& read) {
  try {
    read(isonorm::memory_bytes({data, size}, "input"));
  } catch (const isonorm::Error&) {
  }
  return 0;
}

// Aborts the run unless `holds`.
inline void require(bool holds) {
  if (!holds) std::abort();
}
