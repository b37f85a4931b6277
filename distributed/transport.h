// Internal: what carries bytes between ranks. All ranks make the same calls in the same order.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/system/foreign_text.h"

namespace isonorm::distributed {

inline std::string late_text(const char* what, const std::vector<int>& ranks, double limit) {
  ShortList list;
  for (int r : ranks) list.add(r);
  return text(what, ": rank ", list, " has not come within ", limit, " s");
}

class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual double limit() const = 0;  // seconds that a call waits for a rank

  // Block j of `send`, `bytes` each, goes to rank j. In `receive` lies a block of every rank, in their order. Throws where
  // a rank has ended, or has not come within the time limit: what() names it. After that the transport is of no more use.
  virtual void exchange(const void* send, void* receive, size_t bytes, const char* what) = 0;
  // The `bytes` of every rank to every rank, in their order. Throws as exchange().
  virtual void gather(const void* own, void* all, size_t bytes, const char* what) = 0;
  // Throws where another rank is known to have ended. For who waits for it elsewhere.
  virtual void look() const = 0;
  // A transport among the ranks of that colour, in order of `key` and then of rank. Every rank calls it.
  virtual std::unique_ptr<Transport> split(int colour, int key) = 0;
  // Ends the other ranks: their calls throw that line, or their processes end with that code.
  virtual void abort(const std::string& why, int code) noexcept = 0;
};

}  // namespace isonorm::distributed
