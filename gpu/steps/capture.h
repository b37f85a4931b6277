// The graph capture of the calling thread (gpu/steps/captured.h). During a capture work is recorded instead of done.
// Numbers of the host that change from step to step are put into device memory, which the graph reads in every replay.
#pragma once

#include <mutex>
#include <vector>

#include "core/kernels/optimizer.h"
#include "core/random.h"
#include "gpu/stream.h"

namespace isonorm::gpu {

// An update's numbers as bytes: three doubles, then the rule's numbers.
struct NumberBytes {
  alignas(double) std::byte bytes[72];
};
NumberBytes bytes_of(const kernels::Update& u);

class Capture {
 public:
  // A capture of `stream`. generator, numbers: device memory for a generator's state and for the numbers of `updates`
  // updates; it outlives the capture.
  Capture(const Stream& stream, Generator base, const Generator* generator, const NumberBytes* numbers, int64_t updates)
      : stream_(stream), base_(base), generator_(generator), numbers_(numbers), updates_(updates) {}
  Capture(const Stream&&, Generator, const Generator*, const NumberBytes*, int64_t) = delete;  // it keeps a reference

  const Stream& stream() const { return stream_; }
  // Returns the address at which a kernel reads the base of random states; makes `state`, drawn since the capture
  // began, relative to it. Throws if the state is not from the calling thread's default generator.
  const Generator* generator(Generator& state) const;
  // Returns the address at which the kernel of the next update reads its numbers.
  const void* place(const kernels::Update& u);
  // The numbers and the rules of the updates so far.
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

// The calling thread's capture; null if there is none.
Capture* capture();
inline bool under_capture() { return capture() != nullptr; }
// Makes c the calling thread's capture while it lives.
class SetCapture {
 public:
  [[nodiscard]] explicit SetCapture(Capture& c);
  ~SetCapture();
  SetCapture(const SetCapture&) = delete;
  SetCapture& operator=(const SetCapture&) = delete;
};

// Throws "captured step: `what` ..." if the calling thread captures. Used by work that a graph cannot do again.
void refuse_in_capture(const char* what);

// Held while a stream is captured, and by other threads that use it besides the training thread: their events would
// become a part of the graph.
std::mutex& captures();

// The number of updates that this thread gave to devices so far.
int64_t updates_given();
void count_updates(int64_t n);

}  // namespace isonorm::gpu
