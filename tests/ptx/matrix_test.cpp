// Products of matrices by tensor cores against sums in f64.
#include <bit>
#include <cmath>

#include "tests/ptx/handwritten.h"

using namespace isonorm::ptx;
using Catch::Matchers::Contains;

namespace {

// Loads a [16, 16] and b^T [8, 16] of bf16 by ldmatrix (the two matrices of b twice), and stores a b [16, 8] in f32.
// Section 9.7.15.5.8 has the places of the entries.
const std::string kProduct = R"(
    mov.u32 %r1, room; and.b32 %r2, %r0, 15; shl.b32 %r2, %r2, 5; shr.u32 %r3, %r0, 4; shl.b32 %r3, %r3, 4;
    add.s32 %r2, %r2, %r3; add.s32 %r1, %r1, %r2; mul.wide.u32 %rd9, %r2, 1; add.s64 %rd3, %rd0, %rd9;
    cp.async.cg.shared.global [%r1], [%rd3], 16; and.b32 %r4, %r0, 7; shl.b32 %r4, %r4, 5; shr.u32 %r5, %r0, 3;
    and.b32 %r5, %r5, 1; shl.b32 %r5, %r5, 4; add.s32 %r4, %r4, %r5; mul.wide.u32 %rd9, %r4, 1;
    add.s64 %rd4, %rd1, %rd9; mov.u32 %r6, room; add.s32 %r6, %r6, %r4;
    cp.async.cg.shared.global [%r6+512], [%rd4], 16; cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r1];
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r14, %r15, %r16, %r17}, [%r6+512]; mov.f32 %f1, 0f00000000;
    mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f4, %f5, %f6, %f7}, {%r10, %r11, %r12, %r13}, {%r14, %r15}, {%f1, %f1, %f1, %f1};
    shr.u32 %r7, %r0, 2; shl.b32 %r7, %r7, 5; and.b32 %r8, %r0, 3; shl.b32 %r8, %r8, 3; add.s32 %r7, %r7, %r8;
    cvt.u64.u32 %rd9, %r7; add.s64 %rd5, %rd2, %rd9; st.global.v2.f32 [%rd5], {%f4, %f5};
    st.global.v2.f32 [%rd5+256], {%f6, %f7};)";

uint16_t bf16_of(float x) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16); }  // x is one
float value(uint16_t x) { return std::bit_cast<float>(uint32_t{x} << 16); }

}  // namespace

TEST_CASE("ptx: mma multiplies what ldmatrix loads, with one rounding in f32") {
  std::vector<uint16_t> a, b;
  for (int i = 0; i < 256; ++i) a.push_back(bf16_of(static_cast<float>(i * 37 % 64 - 31) * (i % 3 ? 0.25f : 64.0f)));
  for (int i = 0; i < 128; ++i) b.push_back(bf16_of(static_cast<float>(i * 53 % 64 - 29) * (i % 5 ? 0.5f : 0x1p-9f)));
  const Array<uint16_t> left(a), right(b);
  const Array<float> out(std::vector<float>(128));
  Handwritten kernel(kProduct, ".shared .align 16 .b8 room[768];\n");
  in_every_order([&] {
    kernel({left.address(), right.address(), out.address()});
    for (size_t r = 0; r < 16; ++r)
      for (size_t c = 0; c < 8; ++c) {
        double sum = 0;  // exact: products of 14 bits, spread over less than 30
        for (size_t k = 0; k < 16; ++k) sum += double{value(a[16 * r + k])} * value(b[16 * c + k]);
        INFO(r << ", " << c);
        CHECK(std::fabs(out.values()[8 * r + c] - sum) <= std::ldexp(std::fabs(sum), -23));
        CHECK(std::fabs(out.values()[8 * r + c]) <= std::fabs(sum));  // rounded toward zero
      }
  });
}

TEST_CASE("ptx: matrices by a part of the warp are found") {
  Handwritten kernel(
      "setp.ne.s32 %p1, %r0, 3; @!%p1 bra END; mov.f32 %f1, 0f00000000; "
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%f4, %f5, %f6, %f7}, {%r1, %r1, %r1, %r1}, {%r1, %r1}, {%f1, %f1, %f1, %f1}; END:");
  CHECK_THROWS_WITH(kernel({}), Contains("a part of the warp multiplies"));
}
