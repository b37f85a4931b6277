// Shuffles, barriers and branches: results do not depend on the order of execution, and mistakes are found.
#include <numeric>

#include "tests/ptx/handwritten.h"

using namespace isonorm::ptx;
using Catch::Matchers::Contains;

namespace {

std::vector<uint32_t> up_to(uint32_t n) {
  std::vector<uint32_t> v(n);
  std::iota(v.begin(), v.end(), 0u);
  return v;
}

const char* const kOwnElement = "mul.wide.u32 %rd9, %r0, 4; add.s64 %rd10, %rd0, %rd9; ";
const char* const kStore = " st.global.u32 [%rd10], %r3;";

}  // namespace

TEST_CASE("ptx: a shuffle reads lane i ^ by, and five of them sum a warp") {
  Handwritten exchange(std::string(kOwnElement) + "shfl.sync.bfly.b32 %r3|%p1, %r0, 5, 31, -1;" + kStore);
  Handwritten sum(std::string(kOwnElement) + R"(
    mov.u32 %r3, %r0; mov.u32 %r4, 16;
    L: shfl.sync.bfly.b32 %r5|%p1, %r3, %r4, 31, -1; add.s32 %r3, %r3, %r5; shr.u32 %r4, %r4, 1;
    setp.ne.s32 %p2, %r4, 0; @%p2 bra L;)" +
                  kStore);
  in_every_order([&] {
    const Array<uint32_t> out(up_to(32));
    exchange({out.address()});
    for (uint32_t i = 0; i < 32; ++i) CHECK(out.values()[i] == (i ^ 5));
    sum({out.address()});
    for (uint32_t i = 0; i < 32; ++i) CHECK(out.values()[i] == 32 * 31 / 2);
  });
}

TEST_CASE("ptx: a shuffle by a part of the lanes that it names is found") {
  Handwritten diverged("setp.lt.u32 %p2, %r0, 16; @!%p2 bra END; shfl.sync.bfly.b32 %r3|%p1, %r0, 1, 31, -1; END:");
  Handwritten elsewhere(
      "setp.lt.u32 %p2, %r0, 16; @!%p2 bra OTHER; shfl.sync.bfly.b32 %r3|%p1, %r0, 1, 31, -1; bra END;"
      "OTHER: shfl.sync.bfly.b32 %r3|%p1, %r0, 2, 31, -1; END: bar.sync 0;");
  Handwritten not_named("shfl.sync.bfly.b32 %r3|%p1, %r0, 1, 31, 0x0000ffff;");
  Handwritten ended("setp.lt.u32 %p2, %r0, 16; @!%p2 ret; shfl.sync.bfly.b32 %r3|%p1, %r0, 16, 31, -1;");
  in_every_order([&] {
    CHECK_THROWS_WITH(elsewhere({}), Contains("waits for lanes that do not come") && Contains("shfl.sync.bfly.b32"));
    CHECK_THROWS_WITH(not_named({}), Contains("not in its own mask"));
    CHECK_THROWS_WITH(ended({}), Contains("whose value is read, takes no part"));
  });
  diverged({});  // lanes that have ended are not waited for (9.7.9.6), and no value of theirs is read
}

TEST_CASE("ptx: a barrier orders what warps write and read; without it the order shows") {
  const auto reversed = [](const std::string& between) {
    return std::string(kOwnElement) +
           "mov.u32 %r1, room; shl.b32 %r2, %r0, 2; add.s32 %r1, %r1, %r2; st.shared.u32 [%r1], %r0; " + between +
           " mov.u32 %r1, room; sub.s32 %r2, 1020, %r2; add.s32 %r1, %r1, %r2; ld.shared.u32 %r3, [%r1];" + kStore;
  };
  const std::string room = ".shared .align 4 .b8 room[1024];\n";
  Handwritten right(reversed("bar.sync 0;"), room), wrong(reversed(""), room);
  int seen = 0;
  in_every_order([&] {
    const Array<uint32_t> out(up_to(256));
    const auto is_reversed = [&] {
      for (uint32_t i = 0; i < 256; ++i)
        if (out.values()[i] != 255 - i) return false;
      return true;
    };
    right({out.address()}, {}, {.x = 256});
    CHECK(is_reversed());
    wrong({out.address()}, {}, {.x = 256});
    seen += !is_reversed();
  });
  CHECK(seen == 6);
}

TEST_CASE("ptx: lanes of a warp in different barriers are found") {
  Handwritten kernel("setp.lt.u32 %p1, %r0, 16; @%p1 bra L; bar.sync 0; bra END; L: bar.sync 0; END:");
  CHECK_THROWS_WITH(kernel({}), Contains("different barriers") && Contains("bar.sync 0"));
}

TEST_CASE("ptx: lanes loop as often as they should and meet again; guards and functions") {
  const std::string square = R"(.func (.param .b32 result) square(.param .b32 x) { .reg .b32 %r<3>;
    ld.param.u32 %r1, [x]; mul.lo.s32 %r2, %r1, %r1; st.param.b32 [result], %r2; ret; })";
  Handwritten kernel(std::string(kOwnElement) + R"(
    mov.u32 %r3, 0; mov.u32 %r1, %r0;
    LOOP: setp.eq.s32 %p1, %r1, 0; @%p1 bra DONE; add.s32 %r3, %r3, %r1; sub.s32 %r1, %r1, 1; bra.uni LOOP;
    DONE: bar.warp.sync -1; setp.lt.u32 %p2, %r0, 4; @!%p2 bra NEXT;
    { .param .b32 a; st.param.b32 [a+0], %r3; .param .b32 r; call.uni (r), square, (a); ld.param.b32 %r3, [r+0]; }
    NEXT: @%p2 add.s32 %r3, %r3, 1000;)" +
                         kStore,
                     square);
  in_every_order([&] {
    const Array<uint32_t> out(up_to(32));
    kernel({out.address()});
    for (uint32_t i = 0; i < 32; ++i) {
      const uint32_t sum = i * (i + 1) / 2;
      CHECK(out.values()[i] == (i < 4 ? sum * sum + 1000 : sum));
    }
  });
}

TEST_CASE("ptx: blocks come in the order of the schedule, and atomic operations add up in each") {
  Handwritten kernel(
      "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mad.lo.s32 %r1, %r2, 5, %r1; atom.global.add.u32 %r3, [%rd0], 1;"
      "shl.b32 %r4, %r1, 2; cvt.u64.u32 %rd3, %r4; add.s64 %rd3, %rd1, %rd3; st.global.u32 [%rd3], %r3; "
      "atom.global.max.u32 %r4, [%rd0+4], %r1;");
  std::vector<std::vector<uint32_t>> orders;
  in_every_order([&] {
    const Array<uint32_t> totals({0, 0}), order(std::vector<uint32_t>(15));
    kernel({totals.address(), order.address()}, {.x = 5, .y = 3}, {.x = 1});
    CHECK(totals.values() == std::vector<uint32_t>{15, 14});
    orders.push_back(order.values());
  });
  CHECK(orders[0] == up_to(15));
  CHECK(orders[1] == std::vector<uint32_t>(orders[0].rbegin(), orders[0].rend()));
  CHECK(orders[2] != orders[3]);
}
