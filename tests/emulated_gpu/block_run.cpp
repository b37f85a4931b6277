// Compiled without race checks, because fibers share the data of this file without races. It tells the race checker
// which barriers and warp operations order the threads of a kernel.
#include "tests/emulated_gpu/block_run.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tests/emulated_gpu/sanitizers.h"

namespace isonorm::gpu::emulated {
namespace {

constinit thread_local BlockRun* running = nullptr;

std::string text_of(Place p) {
  const char* slash = std::strrchr(p.file, '/');
  return std::string(slash ? slash + 1 : p.file) + ":" + std::to_string(p.line);
}
bool same(const Place& a, const Place& b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

}  // namespace

BlockRun& BlockRun::of_this_thread() {
  static thread_local BlockRun run;
  running = &run;
  return run;
}

BlockRun::~BlockRun() {
  for (const auto& f : made_) release_stack(*f);
}

void BlockRun::run(const Grid& grid, uint3 block, uint64_t seed) {
  grid_ = &grid;
  blockDim = grid.threads;
  gridDim = grid.blocks;
  blockIdx = block;
  begin_block(seed);
  release(&start_);
  current_ = take_next();
  current_->fiber = take_fiber();
  enter(*current_);
  switch_to(host_, *current_->fiber);
  acquire(&complaint_);
  if (complaint_.empty()) complaint_ = complaint_at_end();
  idle_.insert(idle_.end(), finished_.begin(), finished_.end());
  finished_.clear();
  if (complaint_.empty()) return;
  // Fibers that have not ended are dropped. Their work before their last barrier or warp operation happens before
  // what follows.
  for (char& name : barrier_.name) acquire(&name);
  for (auto& w : warps_)
    for (Meeting& m : w)
      for (auto& slot : m.slot) acquire(&slot);
  for (Thread& t : threads_)
    if (t.fiber) {
      prepare(*t.fiber, &entry);
      renew_for_race_checks(*t.fiber);
      idle_.push_back(t.fiber);
    }
  const std::string message = std::string(grid.name) + ", block (" + std::to_string(block.x) + ", " +
                              std::to_string(block.y) + ", " + std::to_string(block.z) + "): " + complaint_;
  complaint_.clear();
  throw Fault(message);
}

void BlockRun::begin_block(uint64_t seed) {
  random_ = seed * 0x9E3779B97F4A7C15 + 1;
  ordered_ = seed == 0;
  bursts_ = seed % 2 == 0;
  const dim3 d = grid_->threads;
  const uint32_t count = d.x * d.y * d.z;
  threads_.resize(count);
  ready_.clear();
  // Nothing below may allocate: the race checker assigns new memory to the thread that allocates it.
  ready_.reserve(2 * count);
  idle_.reserve(made_.size() + 2 * count);
  finished_.reserve(made_.size() + 2 * count);
  uint32_t number = 0;
  for (unsigned z = 0; z < d.z; ++z)
    for (unsigned y = 0; y < d.y; ++y)
      for (unsigned x = 0; x < d.x; ++x, ++number) {
        threads_[number] = {{x, y, z}, number, nullptr, nullptr, {}, false};
        ready_.push_back(count - 1 - number);  // the last one is taken first if the order is ascending
      }
  warps_.resize(count / 32);
  for (auto& w : warps_)
    for (Meeting& m : w) m.mask = m.arrived = 0;
  while (made_.size() < (kOwnFibers ? count + 1 : 1)) idle_.push_back(new_fiber());
  barrier_ = {};
  ended_ = 0;
  copies.begin_block();
  if (memory.comes_round()) {
    acquire(&end_);
    release(&start_);
  }
  memory.begin_block(grid_->dynamic);
}

std::string BlockRun::complaint_at_end() const {
  if (ended_ < threads_.size()) return "no thread can go on: " + waiting();
  if (!memory.intact()) return "shared memory was written to outside of what was declared";
  return {};
}

// "128 threads, the first is 0, wait in __syncthreads at norm.cu:41; 128 have ended".
std::string BlockRun::waiting() const {
  struct Group {
    std::string where;
    uint32_t first;
    int count;
  };
  std::vector<Group> groups;
  for (const Thread& t : threads_) {
    if (t.ended || !t.waits_in) continue;
    const std::string where = std::string(t.waits_in) + " at " + text_of(t.place);
    auto g = std::find_if(groups.begin(), groups.end(), [&](const Group& o) { return o.where == where; });
    if (g == groups.end()) g = groups.insert(g, {where, t.number, 0});
    ++g->count;
  }
  std::string s;
  for (const Group& g : groups)
    s += std::to_string(g.count) + " threads, the first is " + std::to_string(g.first) + ", wait in " + g.where + "; ";
  return s + std::to_string(ended_) + " have ended";
}

const Slot* BlockRun::meet(const char* what, unsigned mask, const void* operand, size_t bytes, Place place) {
  Thread& me = *current_;
  const uint32_t lane = me.number % 32, first = me.number - lane;
  if (!(mask >> lane & 1)) fault(what, "the calling lane is not in the mask", place);
  Meeting& m = meeting(me.number / 32, mask);
  if (m.arrived == 0) {
    m.what = what;
    m.place = place;
  } else if (m.what != what || !same(m.place, place)) {
    fault(what, "lanes of one warp meet here and in " + std::string(m.what) + " at " + text_of(m.place), place);
  }
  const unsigned phase = m.phase & 1;
  std::byte* to = m.slot[phase][lane].bytes;
  // memcpy() with a variable size would be a function call, which the race checker watches.
  for (size_t i = 0; i < bytes; ++i)
    static_cast<volatile std::byte*>(to)[i] = static_cast<const std::byte*>(operand)[i];
  m.arrived |= 1u << lane;
  release(&m.slot[phase]);
  if (m.arrived == mask) {
    m.arrived = 0;
    ++m.phase;
    for (uint32_t l = 0; l < 32; ++l)
      if (mask >> l & 1) make_ready(threads_[first + l]);
    wait();
  } else {
    wait_in(what, place);
  }
  acquire(&m.slot[phase]);
  return m.slot[phase];
}

void BlockRun::meet_block(const char* what, Place place) {
  Barrier& b = barrier_;
  if (b.arrived == 0) {
    b.what = what;
    b.place = place;
  } else if (b.what != what || !same(b.place, place)) {
    fault(what, "threads of one block meet here and in " + std::string(b.what) + " at " + text_of(b.place), place);
  }
  if (ended_ > 0) fault(what, std::to_string(ended_) + " threads of the block have ended before", place);
  const unsigned phase = b.phase & 1;
  release(&b.name[phase]);
  if (++b.arrived == threads_.size()) {
    b.arrived = 0;
    ++b.phase;
    for (Thread& t : threads_) make_ready(t);
    wait();
  } else {
    wait_in(what, place);
  }
  acquire(&b.name[phase]);
}

void BlockRun::fault(const char* what, const std::string& complaint, Place place) {
  complaint_ = what;
  if (place.line) complaint_ += " at " + text_of(place);
  complaint_ += " in thread " + std::to_string(current_->number) + ": " + complaint;
  release(&complaint_);
  switch_to(*current_->fiber, host_);
  std::abort();
}

void* BlockRun::shared_bytes(const void* tag, size_t bytes, size_t alignment) {
  void* p = memory.region(tag, bytes, alignment);
  if (!p)
    fault("shared", "over 48 KiB of static shared memory, over 227 KiB with the dynamic one, or over eight structs",
          {});
  return p;
}

BlockRun::Thread* BlockRun::take_next() {
  size_t k = ready_.size() - 1;
  if (!ordered_) {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    // With a random choice each time, all warps progress at the same pace. So in every second block one warp runs ahead
    // for a while.
    if (!bursts_ || random_ % 2048 == 0) k = static_cast<size_t>((random_ >> 32) * ready_.size() >> 32);
  }
  std::swap(ready_[k], ready_.back());
  Thread* t = &threads_[ready_.back()];
  ready_.pop_back();
  return t;
}

void BlockRun::make_ready(Thread& t) {
  t.waits_in = nullptr;
  ready_.push_back(t.number);
}

void BlockRun::enter(Thread& t) {
  current_ = &t;
  threadIdx = t.index;
}

Fiber* BlockRun::take_fiber() {
  if (idle_.empty()) return new_fiber();
  Fiber* f = idle_.back();
  idle_.pop_back();
  return f;
}

Fiber* BlockRun::new_fiber() {
  Fiber* f = made_.emplace_back(std::make_unique<Fiber>()).get();
  allocate_stack(*f, made_.size());
  prepare(*f, &entry);
  return f;
}

void BlockRun::wait_in(const char* what, Place place) {
  current_->waits_in = what;
  current_->place = place;
  wait();
}

void BlockRun::wait() {
  Thread& me = *current_;
  if (ready_.empty()) return switch_to(*me.fiber, host_);
  Thread* next = take_next();
  if (next == &me) return;
  if (!next->fiber) next->fiber = take_fiber();
  enter(*next);
  switch_to(*me.fiber, *next->fiber);
}

void BlockRun::entry() {
  begin_on_fiber();
  running->thread_loop();
}

void BlockRun::thread_loop() {
  for (;;) {
    acquire(&start_);
    grid_->thread_main(grid_->closure);
    release(&end_);
    Thread& me = *current_;
    if (const Copy* copy = copies.oldest(me.number))
      fault("cp.async", "the thread ends without having waited for it", copy->place);
    Fiber* mine = me.fiber;
    me.fiber = nullptr;
    me.ended = true;
    ++ended_;
    Thread* next = ready_.empty() ? nullptr : take_next();
    if (next && !next->fiber && !kOwnFibers) {
      next->fiber = mine;
      enter(*next);
      continue;
    }
    (kOwnFibers ? finished_ : idle_).push_back(mine);
    if (next) {
      if (!next->fiber) next->fiber = take_fiber();
      enter(*next);
    }
    switch_to(*mine, next ? *next->fiber : host_);
  }
}

BlockRun::Meeting& BlockRun::meeting(uint32_t warp, unsigned mask) {
  for (Meeting& m : warps_[warp]) {
    if (m.mask == 0) m.mask = mask;
    if (m.mask == mask) return m;
  }
  fault("a warp primitive", "lanes of one warp meet under more than eight different masks", {});
}

const Slot* meet(const char* what, unsigned mask, const void* operand, size_t bytes, Place place) {
  return running->meet(what, mask, operand, bytes, place);
}
void meet_block(const char* what, Place place) { running->meet_block(what, place); }
int lane_id() { return static_cast<int>(running->number() % 32); }
void fault(const char* what, const char* complaint, Place place) { running->fault(what, complaint, place); }
void* shared_bytes(const void* tag, size_t bytes, size_t alignment) {
  return running->shared_bytes(tag, bytes, alignment);
}
void* dynamic_bytes() { return running->memory.dynamic(); }
bool is_shared(const void* p, size_t bytes) { return running->memory.holds(p, bytes); }
void begin_copy(const Copy& copy) {
  if (!running->copies.begin(running->number(), copy))
    running->fault("cp.async", "more than 128 copies not waited for", copy.place);
}
void commit_copies() { running->copies.commit(running->number()); }
bool take_copy(uint32_t groups_left, Copy& copy) { return running->copies.take(running->number(), groups_left, copy); }

}  // namespace isonorm::gpu::emulated
