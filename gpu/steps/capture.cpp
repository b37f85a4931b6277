#include "gpu/steps/capture.h"

#include <cstring>

namespace isonorm::gpu {
namespace {
thread_local Capture* current = nullptr;
thread_local int64_t updates = 0;
}  // namespace

NumberBytes bytes_of(const kernels::Update& u) {
  NumberBytes b{};
  const double first[] = {u.gradient_scale, u.l2, u.keep};
  std::memcpy(b.bytes, first, sizeof first);
  std::visit(
      [&]<class Rule>(const Rule& rule) {
        static_assert(sizeof first + sizeof(Rule) <= sizeof b && std::is_trivially_copyable_v<Rule>);
        std::memcpy(b.bytes + sizeof first, &rule, sizeof rule);
      },
      u.rule);
  return b;
}

const Generator* Capture::generator(Generator& state) const {
  check(state.seed == base_.seed && state.offset >= base_.offset, "captured step: random numbers are drawn from seed ",
        state.seed, " at ", state.offset, ", not from the thread's default generator, which was at seed ", base_.seed,
        ", ", base_.offset);
  state = {0, state.offset - base_.offset};
  return generator_;
}

const void* Capture::place(const kernels::Update& u) {
  const auto at = std::ssize(first_);
  check(at < updates_, "captured step: more than the ", updates_, " updates of the step before");
  first_.push_back(bytes_of(u));
  rules_.push_back(u.rule.index());
  return numbers_ + at;
}

Capture* capture() { return current; }
SetCapture::SetCapture(Capture& c) {
  check(!current, "captured step: one within another");
  current = &c;
}
SetCapture::~SetCapture() { current = nullptr; }

void refuse_in_capture(const char* what) {
  check(!current, "captured step: ", what, ", which a graph cannot do again");
}

std::mutex& captures() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

int64_t updates_given() { return updates; }
void count_updates(int64_t n) { updates += n; }

}  // namespace isonorm::gpu
