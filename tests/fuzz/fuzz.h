// What every fuzz target does: a reader either returns or throws Error; anything else stops the run.
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

// Stops the run where something that must hold does not.
inline void require(bool holds) {
  if (!holds) std::abort();
}
