// While it lives, a Recorder lists the launches, copies, waits and allocations of its thread. Tests count a training
// step's costs with it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace isonorm::gpu {

struct Recorded {
  enum class Kind { launch, copy, wait, allocation };
  Kind kind;
  std::string name;    // "softmax.rows", "host to device", "stream"
  std::string slot;    // the slot that was running, if a profile is taken; else empty
  int64_t blocks = 0;  // of a launch
  int64_t bytes = 0;   // of a copy or an allocation
};

class Recorder {
 public:
  [[nodiscard]] Recorder();
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  const std::vector<Recorded>& all() const { return all_; }
  int64_t count(Recorded::Kind kind) const;

 private:
  friend void record(Recorded::Kind kind, const char* name, int64_t blocks, int64_t bytes);
  std::vector<Recorded> all_;
  Recorder* outer_;
};

// Does nothing if the calling thread has no recorder.
void record(Recorded::Kind kind, const char* name, int64_t blocks = 0, int64_t bytes = 0);
inline void record_wait(const char* what) { record(Recorded::Kind::wait, what); }

}  // namespace isonorm::gpu
