// Loads, stores (9.7.9) and atomic operations (9.7.13).
#include <algorithm>

#include "tests/ptx/lanes.h"
#include "tests/ptx/memory.h"

namespace isonorm::ptx {
namespace {

int part(const Operand& o, size_t k) { return o.kind == Operand::Kind::vector ? o.parts[k] : o.reg; }

void load(Warp& w, const Instruction& in, uint32_t lanes) {
  const Operand &to = in.operands[0], &from = in.operands[1];
  const Space space = space_of(in, from);
  const size_t bytes = size_of(in.type);
  each(lanes, [&](int i) {
    const std::byte* const p = reach(w, in, i, space, address_of(w, from, i), bytes * in.width);
    for (size_t k = 0; k < in.width; ++k) {
      uint64_t word = 0;
      std::memcpy(&word, p + k * bytes, bytes);
      if (is_signed(in.type)) {  // the register may be wider (9.7.9.8)
        const size_t above = 64 - 8 * bytes;
        word = static_cast<uint64_t>(static_cast<int64_t>(word << above) >> above);
      }
      w.row(part(to, k))[i] = word;
    }
  });
}

void store(Warp& w, const Instruction& in, uint32_t lanes) {
  const Operand &to = in.operands[0], &from = in.operands[1];
  const Space space = space_of(in, to);
  const size_t bytes = size_of(in.type);
  each(lanes, [&](int i) {
    std::byte* const p = reach(w, in, i, space, address_of(w, to, i), bytes * in.width);
    for (size_t k = 0; k < in.width; ++k) std::memcpy(p + k * bytes, &w.row(part(from, k))[i], bytes);
  });
}

// [address] and one value or a vector of `width`.
bool is_access(const Instruction& in, const Operand& address, const Operand& values) {
  const size_t count = values.kind == Operand::Kind::vector ? values.parts.size()
                       : values.kind == Operand::Kind::reg  ? 1
                                                            : 0;
  return in.operands.size() == 2 && address.kind == Operand::Kind::address && address.reg >= 0 && count == in.width &&
         in.type != Type::none && in.type != Type::pred;
}
// Every access takes place, in the program's order, so `volatile` changes nothing.
void take_width(Instruction& in, Modifiers& modifiers) {
  modifiers.take("volatile");
  if (modifiers.take("v2")) in.width = 2;
  if (modifiers.take("v4")) in.width = 4;
}

Execute select_load(Instruction& in, Modifiers& modifiers) {
  modifiers.take("nc");  // loads through the read-only cache (9.7.9.9); there are no caches here
  take_width(in, modifiers);
  return in.operands.size() == 2 && is_access(in, in.operands[1], in.operands[0]) ? load : nullptr;
}
Execute select_store(Instruction& in, Modifiers& modifiers) {
  take_width(in, modifiers);
  return in.operands.size() == 2 && is_access(in, in.operands[0], in.operands[1]) ? store : nullptr;
}

// One lane after another: d = [a], [a] = f(d, b).
template <class T, class F> Execute atomic(F) {
  return [](Warp& w, const Instruction& in, uint32_t lanes) {
    const bool returns = in.operands.size() == 3;  // atom; red has no result
    const Operand& address = in.operands[returns];
    const uint64_t* const b = w.row(in.operands.back().reg);
    each(lanes, [&](int i) {
      std::byte* const p = reach(w, in, i, space_of(in, address), address_of(w, address, i), sizeof(T));
      T old;
      std::memcpy(&old, p, sizeof old);
      const T changed = F{}(old, get<T>(b[i]));
      std::memcpy(p, &changed, sizeof changed);
      if (returns) w.row(in.operands[0].reg)[i] = put(old);
    });
  };
}
Execute select_atomic(Instruction& in, Modifiers& modifiers) {
  const size_t count = in.operands.size();
  if (count < 2 || count > 3 || in.operands[count - 2].kind != Operand::Kind::address ||
      in.operands[count - 1].kind != Operand::Kind::reg)
    return nullptr;
  modifiers.take("relaxed");  // blocks execute one after another, so memory orders and scopes make no difference
  modifiers.take("gpu");
  const Type type = is_signed(in.type) ? in.type : unsigned_of(in.type);
  return for_type<uint32_t, uint64_t, int32_t, int64_t>(type, [&]<class T>() -> Execute {
    if (modifiers.take("add"))
      return atomic<T>([](T a, T b) { return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); });
    if (modifiers.take("exch")) return atomic<T>([](T, T b) { return b; });
    if (modifiers.take("min")) return atomic<T>([](T a, T b) { return std::min(a, b); });
    if (modifiers.take("max")) return atomic<T>([](T a, T b) { return std::max(a, b); });
    return nullptr;
  });
}

}  // namespace

const Operations& memory_operations() {
  static const Operations all{
      {"ld", select_load}, {"st", select_store}, {"atom", select_atomic}, {"red", select_atomic}};
  return all;
}

}  // namespace isonorm::ptx
