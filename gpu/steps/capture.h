// What the calling thread has under capture (gpu/steps/captured.h), for those whose work is then written down instead of
// done: numbers of the host that change from step to step are put where the graph reads them anew each time.
#pragma once

#include <mutex>
#include <vector>

#include "core/kernels/optimizer.h"
#include "core/random.h"
#include "gpu/stream.h"

namespace isonorm::gpu {

// The numbers of one update as bytes: three doubles, then the rule's.
struct NumberBytes {
  alignas(double) std::byte bytes[72];
};
NumberBytes bytes_of(const kernels::Update& u);

class Capture {
 public:
  // Of `stream`; device memory for the state of a generator and the numbers of `updates` updates, which outlives it.
  Capture(const Stream& stream, Generator base, const Generator* generator, const NumberBytes* numbers, int64_t updates)
      : stream_(stream), base_(base), generator_(generator), numbers_(numbers), updates_(updates) {}
  Capture(const Stream&&, Generator, const Generator*, const NumberBytes*, int64_t) = delete;  // it keeps a reference

  const Stream& stream() const { return stream_; }
  // Where a kernel reads the base of a state that was drawn since the capture began, and that state from there. Throws
  // where it is of another generator than the calling thread's default one.
  const Generator* generator(Generator& state) const;
  // Where the kernel of the next update reads its numbers.
  const void* place(const kernels::Update& u);
  // Of all updates so far.
  const std::vector<NumberBytes>& first() const { return first_; }
  const std::vector<size_t>& rules() const { return rules_; }

 private:
  const Stream& stream_;
  const Generator base_;
  const Generator* const generator_;
  const NumberBytes* const numbers_;
  const int64_t updates_;
  std::vector<NumberBytes> first_;
  std::vector<size_t> rules_;
};

// Of the calling thread; null where there is none.
Capture* capture();
inline bool under_capture() { return capture() != nullptr; }
// Makes it the calling thread's while it lives.
class SetCapture {
 public:
  [[nodiscard]] explicit SetCapture(Capture& c);
  ~SetCapture();
  SetCapture(const SetCapture&) = delete;
  SetCapture& operator=(const SetCapture&) = delete;
};

// Throws "captured step: `what` ..." where the calling thread captures. For what a graph cannot do.
void refuse_in_capture(const char* what);

// Held while a stream is captured, and by threads that use it beside the one that trains: an event of theirs would become
// a part of the graph.
std::mutex& captures();

// Updates that this thread gave to devices so far.
int64_t updates_given();
void count_updates(int64_t n);

}  // namespace isonorm::gpu
