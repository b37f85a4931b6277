// A switch between fused ops and the compositions of ordinary ops that define them.
#pragma once

namespace isonorm {

// While it lives, every fused op of this thread runs its composition from reference:: instead: slower, equal up to
// rounding. Use it to find out whether a fused op is to blame. A graph recorded meanwhile keeps its compositions
// afterwards.
class UseReference {
 public:
  [[nodiscard]] UseReference();
  ~UseReference();
  UseReference(const UseReference&) = delete;
  UseReference& operator=(const UseReference&) = delete;

 private:
  bool before_;
};

bool use_reference();

}  // namespace isonorm
