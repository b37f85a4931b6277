// Switches of the calling thread: whether ops are recorded, and whether every result is checked for NaN and infinity.
#pragma once

namespace isonorm {

bool grad_enabled();
bool anomaly_enabled();

// While it lives, ops of this thread are not recorded.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};

// While it lives, the first op of this thread that produces NaN or infinity throws, naming itself and its module;
// backward rules of ops recorded meanwhile do the same. Reads every result once more: for debugging.
class AnomalyMode {
 public:
  AnomalyMode();
  ~AnomalyMode();
  AnomalyMode(const AnomalyMode&) = delete;
  AnomalyMode& operator=(const AnomalyMode&) = delete;

 private:
  bool before_;
};

}  // namespace isonorm
