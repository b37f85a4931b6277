// Grids and blocks: the launch of a kernel.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "tests/ptx/program.h"
#include "tests/ptx/warp.h"

namespace isonorm::ptx {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

struct Block {
  Dim3 grid, threads, index;
  std::vector<std::byte> parameters, shared, dynamic_shared;
  std::vector<Warp> warps;

  uint32_t special(Special s, uint32_t thread) const;
  // Executes the block `index`. Every bit of shared memory is 1 at first. Throws Fault.
  void run(Schedule& schedule);
};

// A kernel that can be launched, one launch at a time. Throws Fault (refused) if it cannot be executed.
class Kernel {
 public:
  explicit Kernel(Function& f);
  const Function& function() const { return f_; }
  // parameters: all parameters, each at Parameter::at. dynamic: bytes of dynamic shared memory. Throws Fault.
  void launch(Dim3 blocks, Dim3 threads, std::vector<std::byte> parameters, size_t dynamic = 0);

 private:
  const Function& f_;
  Block block_;
};

}  // namespace isonorm::ptx
