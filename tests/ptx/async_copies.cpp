#include "tests/ptx/async_copies.h"

#include <algorithm>

#include "tests/ptx/lanes.h"
#include "tests/ptx/memory.h"

namespace isonorm::ptx {
namespace {

// cp.async.cg.shared.global [to], [from], bytes, valid; the addresses are checked now.
void begin(Warp& w, const Instruction& in, uint32_t lanes) {
  const Operand &to = in.operands[0], &from = in.operands[1];
  each(lanes, [&](int i) {
    AsyncCopies& copies = w.copies[static_cast<size_t>(i)];
    AsyncCopy c{address_of(w, to, i), address_of(w, from, i), get<uint32_t>(w.row(in.operands[2].reg)[i]), 0,
                copies.groups};
    c.valid = in.operands.size() == 4 ? std::min(c.bytes, get<uint32_t>(w.row(in.operands[3].reg)[i])) : c.bytes;
    reach(w, in, i, Space::shared, c.to, c.bytes);
    if (c.valid > 0) reach(w, in, i, Space::global, c.from, c.bytes);
    copies.begun.push_back(c);
  });
}
void commit(Warp& w, const Instruction&, uint32_t lanes) {
  each(lanes, [&](int i) { ++w.copies[static_cast<size_t>(i)].groups; });
}
// cp.async.wait_group n: completes all groups except the n that were committed last.
void wait(Warp& w, const Instruction& in, uint32_t lanes) {
  each(lanes, [&](int i) {
    const uint64_t left = w.row(in.operands[0].reg)[i];
    AsyncCopies& copies = w.copies[static_cast<size_t>(i)];
    for (; !copies.begun.empty() && copies.groups - copies.begun.front().group > left; copies.begun.pop_front()) {
      const AsyncCopy& c = copies.begun.front();
      std::byte* const to = reach(w, in, i, Space::shared, c.to, c.bytes);
      std::memset(to, 0, c.bytes);
      if (c.valid > 0) std::memcpy(to, reach(w, in, i, Space::global, c.from, c.bytes), c.valid);
    }
  });
}

Execute select_copy(Instruction& in, Modifiers& modifiers) {
  if (!modifiers.take("async")) return nullptr;
  if (modifiers.take("commit_group")) return in.operands.empty() ? commit : nullptr;
  if (modifiers.take("wait_group")) return are_registers(in, 1) ? wait : nullptr;
  const size_t count = in.operands.size();
  // "shared" has been taken as the space, "global" is left
  const bool is_copy =
      modifiers.take("cg") && modifiers.take("global") && in.space == Space::shared && (count == 3 || count == 4);
  return is_copy && in.operands[0].kind == Operand::Kind::address && in.operands[1].kind == Operand::Kind::address
             ? begin
             : nullptr;
}

}  // namespace

const Operations& copy_operations() {
  static const Operations all{{"cp", select_copy}};
  return all;
}

}  // namespace isonorm::ptx
