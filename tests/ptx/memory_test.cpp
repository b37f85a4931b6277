// Wrong accesses are found, and their line is named. Memory that nothing has written is garbage.
#include "tests/ptx/handwritten.h"

using namespace isonorm::ptx;
using Catch::Matchers::Contains;

namespace {

const std::string kRoom = ".shared .align 16 .b8 room[64];\n";

Fault::Kind kind_of(Handwritten& kernel, const std::vector<uint64_t>& parameters, size_t dynamic = 0) {
  try {
    kernel(parameters, {}, {.x = 32}, dynamic);
  } catch (const Fault& fault) {
    return fault.kind;
  }
  return Fault::Kind::other;
}

}  // namespace

TEST_CASE("ptx: an access beyond an array is found with kernel, lane and line") {
  const Array<uint32_t> array(std::vector<uint32_t>(31));
  Handwritten one_too_many("\nmul.wide.u32 %rd9, %r0, 4; add.s64 %rd0, %rd0, %rd9;\nld.global.u32 %r1, [%rd0];");
  CHECK_THROWS_WITH(one_too_many({array.address()}),
                    Contains("k: block 0,0,0, warp 0, lane 31: line 3: ld.global.u32 %r1, [%rd0]: 4 bytes at") &&
                        Contains("are outside of global memory"));
  CHECK(kind_of(one_too_many, {array.address()}) == Fault::Kind::address);
  Handwritten before("ld.global.u32 %r1, [%rd0+-4];"), vector("ld.global.v2.u32 {%r1, %r2}, [%rd0+120];");
  CHECK(kind_of(before, {array.address()}) == Fault::Kind::address);
  CHECK(kind_of(vector, {array.address()}) == Fault::Kind::address);
}

TEST_CASE("ptx: an access beyond shared memory or parameters is found") {
  Handwritten shared("st.shared.u32 [room+64], %r0;", kRoom), parameter("ld.param.u64 %rd3, [p2+8];");
  CHECK_THROWS_WITH(shared({}), Contains("outside of shared memory"));
  CHECK_THROWS_WITH(parameter({}), Contains("outside of the parameters"));
  Handwritten dynamic("mov.u32 %r1, bytes; st.shared.u32 [%r1+12], %r0;", ".extern .shared .align 16 .b8 bytes[];\n");
  dynamic({}, {}, {.x = 32}, 16);
  CHECK(kind_of(dynamic, {}, 12) == Fault::Kind::address);
}

TEST_CASE("ptx: an access beyond a lane's frame is found") {
  const std::string frame = ".param .b64 a; st.param.b64 [a], 7; ";
  Handwritten inside(frame + "ld.param.u32 %r3, [a+4];"), above(frame + "ld.param.u32 %r3, [a+8];"),
      below(frame + "ld.param.u32 %r3, [a+-4];"), write(frame + "st.param.u32 [a+-4], %r0;");
  inside({});
  for (Handwritten* const kernel : {&above, &below, &write}) CHECK_THROWS_WITH((*kernel)({}), Contains("the frame"));
}

TEST_CASE("ptx: a misaligned access is found") {
  const Array<uint64_t> array(std::vector<uint64_t>(8));
  Handwritten word("ld.global.u32 %r1, [%rd0+2];"), vector("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd0];"),
      shared("ld.shared.u16 %h1, [room+1];", kRoom);
  CHECK_THROWS_WITH(word({array.address()}), Contains("is no multiple of 4"));
  CHECK(kind_of(word, {array.address()}) == Fault::Kind::misaligned);
  CHECK(kind_of(vector, {(array.address() + 15) / 16 * 16 + 8}) == Fault::Kind::misaligned);
  CHECK(kind_of(shared, {}) == Fault::Kind::misaligned);
}

TEST_CASE("ptx: registers and shared memory hold garbage before they are written") {
  const Array<uint32_t> out(std::vector<uint32_t>(2));
  Handwritten kernel("ld.shared.u32 %r2, [room]; st.global.u32 [%rd0], %r2; st.global.u32 [%rd0+4], %r9;", kRoom);
  kernel({out.address()});
  CHECK(out.values() == std::vector<uint32_t>{~0u, 0xdeadbeef});
}

TEST_CASE("ptx: an asynchronous copy is there after the wait for its group and not before") {
  const Array<uint32_t> in({1, 2, 3, 4, 5, 6, 7, 8}), out(std::vector<uint32_t>(4));
  if (in.address() % 16) return;  // std::vector's memory is at multiples of 16 with all libraries we know
  const auto copied = [&](const std::string& wait) {
    Handwritten kernel(
        "mov.u32 %r1, room; cp.async.cg.shared.global [%r1], [%rd0], 16; cp.async.commit_group;"
        "mov.u32 %r2, 8; cp.async.cg.shared.global [%r1+16], [%rd0+16], 16, %r2; cp.async.commit_group; " +
            wait +
            " ld.shared.u32 %r3, [room+12]; st.global.u32 [%rd1], %r3; ld.shared.u32 %r3, [room+20]; st.global.u32 "
            "[%rd1+4], %r3;"
            "ld.shared.u32 %r3, [room+24]; st.global.u32 [%rd1+8], %r3;",
        kRoom);
    kernel({in.address(), out.address()}, {}, {.x = 1});
    return out.values();
  };
  CHECK(copied("") == std::vector<uint32_t>{~0u, ~0u, ~0u, 0});
  CHECK(copied("cp.async.wait_group 1;") == std::vector<uint32_t>{4, ~0u, ~0u, 0});
  CHECK(copied("cp.async.wait_group 0;") == std::vector<uint32_t>{4, 6, 0, 0});  // zeros after the 8 valid bytes
}

TEST_CASE("ptx: generic addresses reach shared memory") {
  const Array<uint32_t> out(std::vector<uint32_t>(1));
  Handwritten kernel(
      "mov.u64 %rd3, room; cvta.shared.u64 %rd4, %rd3; st.u32 [%rd4+8], 7; cvta.to.shared.u64 %rd5, %rd4; "
      "ld.shared.u32 %r1, [%rd5+8];"
      "st.global.u32 [%rd0], %r1;",
      kRoom);
  kernel({out.address()}, {}, {.x = 1});
  CHECK(out.values()[0] == 7);
}

TEST_CASE("ptx: an instruction that the interpreter does not execute is refused with its line") {
  CHECK_THROWS_WITH(Handwritten("\n\nsad.u32 %r1, %r2, %r3, %r4;"),
                    Contains("ptx: k: line 3: not executed here: sad.u32 %r1, %r2, %r3, %r4"));
  for (const char* const line :
       {"add.sat.s32 %r1, %r2, %r3;", "fma.rm.f32 %f1, %f2, %f3, %f4;", "ld.global.v8.f32 %f1, [%rd0];",
        "add.s32 %r1, %r2;", "bra NOWHERE;", "shfl.sync.down.b32 %r1|%p1, %r2, 1, 31, -1;", "bar.sync 1;",
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 %r1, %r2;", ".local .b8 depot[8];",
        "call.uni (r), nothing, (a);", "ld.global.u32 %r1, [elsewhere];"}) {
    INFO(line);
    CHECK_THROWS_AS(Handwritten(line), Fault);
  }
  CHECK_THROWS_WITH(parse("\n.global .u32 counter;"), Contains("line 2: .global .u32 counter"));
}
