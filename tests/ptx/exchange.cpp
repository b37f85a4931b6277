// Instructions of several lanes: shuffles (9.7.9.6) and barriers (9.7.13). Branches and calls (9.7.12).
#include <algorithm>
#include <array>

#include "tests/ptx/block.h"
#include "tests/ptx/lanes.h"
#include "tests/ptx/schedule.h"

namespace isonorm::ptx {
namespace {

// d: the value of lane i ^ by if this lane is within the segment, else the lane's own. p: whether it is within.
void shuffle(Warp& w, const Instruction& in, uint32_t lanes) {
  const size_t first = in.operands.size() == 6 ? 2 : 1;
  const uint64_t *const a = w.row(in.operands[first].reg), *const by = w.row(in.operands[first + 1].reg),
                        *const c = w.row(in.operands[first + 2].reg);
  std::array<uint64_t, kLanes> values;
  std::copy_n(a, kLanes, values.begin());
  each(lanes, [&](int i) {
    const auto clamp = get<uint32_t>(c[i]), segment = clamp >> 8 & 31;
    const int most = static_cast<int>((static_cast<uint32_t>(i) & segment) | (clamp & 31 & ~segment));
    const int other = i ^ static_cast<int>(get<uint32_t>(by[i]) & 31), from = other <= most ? other : i;
    if (!(lanes >> from & 1))
      fault(w, in, i, Fault::Kind::other, "lane " + std::to_string(from) + ", whose value is read, takes no part");
    w.row(in.operands[0].reg)[i] = put(get<uint32_t>(values[static_cast<size_t>(from)]));
    if (first == 2) w.row(in.operands[1].reg)[i] = other <= most;
  });
}
Execute select_shuffle(Instruction& in, Modifiers& modifiers) {
  const size_t count = in.operands.size();
  if (!modifiers.take("sync") || !modifiers.take("bfly") || in.type != Type::b32 || (count != 5 && count != 6) ||
      !are_registers(in, count))
    return nullptr;
  in.flow = Flow::converged;
  in.mask = in.operands.back().reg;
  return shuffle;
}

void nothing(Warp&, const Instruction&, uint32_t) {}  // Instruction::flow does the work

// bar.sync 0 (the whole block), bar.warp.sync mask
Execute select_barrier(Instruction& in, Modifiers& modifiers) {
  if (!are_registers(in, 1)) return nullptr;
  const bool of_warp = modifiers.take("warp");
  if (!modifiers.take("sync") || (!of_warp && in.operands[0].name != "0")) return nullptr;
  in.flow = of_warp ? Flow::converged : Flow::barrier;
  if (of_warp) in.mask = in.operands[0].reg;
  return nothing;
}

Execute select_branch(Instruction& in, Modifiers& modifiers) {
  modifiers.take("uni");
  in.flow = Flow::branch;
  return in.operands.size() == 1 ? nothing : nullptr;
}
Execute select_exit(Instruction& in, Modifiers&) {
  in.flow = Flow::exit;
  return in.operands.empty() ? nothing : nullptr;
}

// Executes the function to its end, in a warp of its own.
void call(Warp& w, const Instruction& in, uint32_t lanes) {
  const Function& f = *in.callee;
  Warp callee(f, w.number);
  callee.begin(*w.block, lanes);
  const auto frame = [](Warp& of, int lane, size_t at) {
    return of.frames.data() + static_cast<size_t>(lane) * of.function->frame_bytes + at;
  };
  each(lanes, [&](int i) {
    for (size_t k = 0; k < in.arguments.size(); ++k)
      std::memcpy(frame(callee, i, f.parameters[k].at), frame(w, i, static_cast<size_t>(in.arguments[k])),
                  f.parameters[k].bytes);
  });
  Schedule at_once;
  callee.run(at_once);
  if (callee.pass_barrier()) fault(w, in, 0, Fault::Kind::refused, "a barrier in a function is not executed here");
  each(lanes, [&](int i) {
    for (size_t k = 0; k < in.results.size(); ++k)
      std::memcpy(frame(w, i, static_cast<size_t>(in.results[k])), frame(callee, i, f.results[k].at),
                  f.results[k].bytes);
  });
}
Execute select_call(Instruction& in, Modifiers& modifiers) {
  modifiers.take("uni");
  return in.callee ? call : nullptr;
}

Execute select_fence(Instruction&, Modifiers& modifiers) {  // all lanes see the same memory at once
  modifiers.take("gl");
  modifiers.take("sys");
  modifiers.take("cta");
  return nothing;
}

}  // namespace

const Operations& exchange_operations() {
  static const Operations all{{"shfl", select_shuffle}, {"bar", select_barrier}, {"bra", select_branch},
                              {"ret", select_exit},     {"exit", select_exit},   {"call", select_call},
                              {"membar", select_fence}};
  return all;
}

}  // namespace isonorm::ptx
