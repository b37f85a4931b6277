// Memory that kernels access: global memory (at the host's addresses), shared memory, parameters and frames.
#pragma once

#include "tests/ptx/warp.h"

namespace isonorm::ptx {

// Kernels may access these bytes from now on, until the address is removed.
void add_memory(const void* p, size_t bytes);
void remove_memory(const void* p);
bool is_memory(uint64_t address, size_t bytes);

// The host's address of `bytes` bytes that a lane accesses. Throws Fault if they are not within one block of the
// space's memory, or if the address is not a multiple of `bytes` (9.7.9.1).
std::byte* reach(Warp& w, const Instruction& in, int lane, Space space, uint64_t address, size_t bytes);

// The space and, for one lane, the address that an operand [a+b] names.
inline Space space_of(const Instruction& in, const Operand& o) {
  return o.space == Space::generic ? in.space : o.space;
}
inline uint64_t address_of(Warp& w, const Operand& o, int lane) {
  return w.row(o.reg)[lane] + static_cast<uint64_t>(o.offset);
}

}  // namespace isonorm::ptx
