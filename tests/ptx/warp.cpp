#include "tests/ptx/warp.h"

#include <algorithm>

#include "tests/ptx/block.h"
#include "tests/ptx/lanes.h"
#include "tests/ptx/schedule.h"

namespace isonorm::ptx {

void fault(const Warp& w, const Instruction& in, int lane, Fault::Kind kind, const std::string& why) {
  const Dim3 b = w.block->index;
  const auto n = [](auto value) { return std::to_string(value); };
  throw Fault(kind, "ptx: " + w.function->name + ": block " + n(b.x) + "," + n(b.y) + "," + n(b.z) + ", warp " +
                        n(w.number) + ", lane " + n(lane) + ": " + in.text + ": " + why);
}

Warp::Warp(const Function& f, int n)
    : function(&f),
      number(n),
      registers(static_cast<size_t>(f.registers) * kLanes, 0xdead'beef'dead'beef),
      frames(f.frame_bytes * kLanes, std::byte{0xff}) {
  for (const auto& [reg, value] : f.constants) std::fill_n(row(reg), kLanes, value);
}

void Warp::begin(Block& b, uint32_t starting) {
  block = &b;
  for (int i = 0; i < kLanes; ++i) {
    lanes[static_cast<size_t>(i)] = {0, starting >> i & 1 ? Lane::State::running : Lane::State::ended};
    copies[static_cast<size_t>(i)] = {};
  }
  for (const auto& [reg, name] : function->specials)
    for (int i = 0; i < kLanes; ++i) row(reg)[i] = b.special(name, static_cast<uint32_t>(number * kLanes + i));
}

uint32_t Warp::in_state(Lane::State state) const {
  uint32_t found = 0;
  for (int i = 0; i < kLanes; ++i) found |= uint32_t{lanes[static_cast<size_t>(i)].state == state} << i;
  return found;
}
bool Warp::has(Lane::State state) const { return in_state(state) != 0; }

void Warp::move(uint32_t moved, int at) {
  each(moved, [&](int i) { lanes[static_cast<size_t>(i)].at = at; });
}
void Warp::stop(uint32_t stopped, Lane::State state) {
  each(stopped, [&](int i) { lanes[static_cast<size_t>(i)].state = state; });
}

// The lanes at the earliest instruction, so that lanes that took different branches meet again. A drawn order sometimes
// takes other lanes.
Warp::Group Warp::next_group(Schedule& schedule) const {
  const uint32_t running = in_state(Lane::State::running);
  Group g;
  if (!running) return g;
  const auto at = [&](int i) { return lanes[static_cast<size_t>(i)].at; };
  g.at = at(std::countr_zero(running));
  if (const int drawn = schedule.lane(); drawn >= 0 && running >> drawn & 1)
    g.at = at(drawn);
  else
    each(running, [&](int i) { g.at = std::min(g.at, at(i)); });
  each(running, [&](int i) {
    if (at(i) == g.at)
      g.lanes |= 1u << i;
    else if (at(i) > g.at && (g.meets_at < 0 || at(i) < g.meets_at))
      g.meets_at = at(i);
  });
  return g;
}

uint32_t Warp::guarded(const Instruction& in, uint32_t group) {
  if (in.predicate < 0) return group;
  const uint64_t* const p = row(in.predicate);
  uint32_t active = 0;
  each(group, [&](int i) { active |= uint32_t{get<bool>(p[i]) != in.unless} << i; });
  return active;
}

bool Warp::converge(const Instruction& in, Group& g, uint32_t active) {
  const uint32_t waiting = in_state(Lane::State::converging), ended = in_state(Lane::State::ended);
  uint32_t here = active;
  each(waiting, [&](int i) { here |= uint32_t{lanes[static_cast<size_t>(i)].at == g.at} << i; });
  const auto mask_of = [&](int i) { return in.mask < 0 ? kAllLanes : get<uint32_t>(row(in.mask)[i]); };
  const uint32_t mask = mask_of(std::countr_zero(active));
  each(here, [&](int i) {
    if (mask_of(i) != mask) fault(*this, in, i, Fault::Kind::other, "lanes that meet here have different masks");
    if (!(mask >> i & 1)) fault(*this, in, i, Fault::Kind::other, "the lane is not in its own mask");
  });
  move(g.lanes, g.at + 1);
  if (mask & ~ended & ~here) {
    move(active, g.at);
    stop(active, Lane::State::converging);
    return false;
  }
  in.execute(*this, in, here);
  stop(here, Lane::State::running);
  move(here, ++g.at);
  return here == g.lanes && g.at != g.meets_at;
}

bool Warp::pass_barrier() {
  if (const uint32_t converging = in_state(Lane::State::converging)) {
    const int lane = std::countr_zero(converging);
    fault(*this, function->code[static_cast<size_t>(lanes[static_cast<size_t>(lane)].at)], lane, Fault::Kind::other,
          "the lane waits for lanes that do not come: they wait elsewhere, or took another branch");
  }
  const uint32_t waiting = in_state(Lane::State::at_barrier);
  if (!waiting) return false;
  const int first = std::countr_zero(waiting);
  each(waiting, [&](int i) {
    if (lanes[static_cast<size_t>(i)].at != lanes[static_cast<size_t>(first)].at)
      fault(*this, function->code[static_cast<size_t>(lanes[static_cast<size_t>(i)].at - 1)], i, Fault::Kind::other,
            "lanes of a warp wait in different barriers");
  });
  stop(waiting, Lane::State::running);
  return true;
}

// True: the group continues at g.at. False: Lane::at has every lane's position, and new groups must be formed.
bool Warp::step(Group& g) {
  const Instruction& in = function->code[static_cast<size_t>(g.at)];
  const uint32_t active = guarded(in, g.lanes);
  if (active && in.flow == Flow::branch && active == g.lanes && g.meets_at < 0) {
    g.at = in.target;
    return true;
  }
  if (active && in.flow == Flow::converged) return converge(in, g, active);
  if (active && in.flow == Flow::next) in.execute(*this, in, active);
  ++g.at;
  if ((!active || in.flow == Flow::next) && g.at != g.meets_at) return true;
  move(g.lanes, g.at);
  if (in.flow == Flow::branch) move(active, in.target);
  if (in.flow == Flow::barrier) stop(active, Lane::State::at_barrier);
  if (in.flow == Flow::exit) {
    stop(active, Lane::State::ended);
    stop(in_state(Lane::State::converging), Lane::State::running);  // perhaps no other lanes are left
  }
  return false;
}

void Warp::run(Schedule& schedule) {
  for (int64_t left = schedule.turn(); left > 0;) {
    Group g = next_group(schedule);
    if (!g.lanes) return;
    bool together = true;
    for (; together && left > 0; --left) together = step(g);
    if (together) move(g.lanes, g.at);
  }
}

}  // namespace isonorm::ptx
