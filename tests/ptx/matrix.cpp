// Matrices that the lanes of a warp hold together (9.7.15). Lane i is in group i / 4, at place i % 4.
#include <array>
#include <cmath>

#include "tests/ptx/lanes.h"
#include "tests/ptx/memory.h"

namespace isonorm::ptx {
namespace {

// ldmatrix: matrices of 8 x 8 entries of 16 bits. Lane 8 k + r has the address of row r of matrix k. Lane i receives
// entries 2 (i % 4) and 2 (i % 4) + 1 of row i / 4; with trans, of column i / 4.
template <bool kTransposed> void load_matrices(Warp& w, const Instruction& in, uint32_t lanes) {
  if (lanes != kAllLanes) fault(w, in, 0, Fault::Kind::other, "a part of the warp loads matrices");
  const std::vector<int>& to = in.operands[0].parts;
  std::array<std::array<uint16_t[8], 8>, 4> m;
  for (size_t k = 0; k < to.size(); ++k)
    for (size_t r = 0; r < 8; ++r) {
      const int lane = static_cast<int>(8 * k + r);
      std::memcpy(m[k][r], reach(w, in, lane, Space::shared, address_of(w, in.operands[1], lane), 16), 16);
    }
  for (size_t k = 0; k < to.size(); ++k)
    for (size_t i = 0; i < kLanes; ++i) {
      const size_t row = i / 4, column = 2 * (i % 4);
      const uint32_t first = kTransposed ? m[k][column][row] : m[k][row][column];
      const uint32_t second = kTransposed ? m[k][column + 1][row] : m[k][row][column + 1];
      w.row(to[k])[i] = put(second << 16 | first);
    }
}
Execute select_load(Instruction& in, Modifiers& modifiers) {
  const bool is_known =
      modifiers.take("sync") && modifiers.take("aligned") && modifiers.take("m8n8") && modifiers.take("x4");
  if (!is_known || in.space != Space::shared || in.type != Type::b16 || in.operands.size() != 2 ||
      in.operands[0].parts.size() != 4 || in.operands[1].kind != Operand::Kind::address)
    return nullptr;
  in.flow = Flow::converged;
  return modifiers.take("trans") ? load_matrices<true> : load_matrices<false>;
}

// The sum of 16 exact products and c, rounded toward zero to f32. PTX leaves order and rounding of the sum open
// (9.7.15.5); tensor cores round toward zero (Fasi et al., "Numerical behavior of NVIDIA tensor cores", 2021).
float sum_of_products(const float* a, const float* b, float c) {
  double sum = c;
  for (int k = 0; k < 16; ++k) sum += static_cast<double>(a[k]) * b[k];
  const auto rounded = static_cast<float>(sum);
  return std::isfinite(rounded) && std::fabs(rounded) > std::fabs(sum) ? std::nextafter(rounded, 0.0f) : rounded;
}

float from_bf16(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits & 0xffff) << 16); }

// mma.m16n8k16: d [16, 8] = a [16, 16] b [16, 8] + c, bf16 and f32. Section 9.7.15.5.8 says which entries a lane has.
void multiply(Warp& w, const Instruction& in, uint32_t lanes) {
  if (lanes != kAllLanes) fault(w, in, 0, Fault::Kind::other, "a part of the warp multiplies matrices");
  float a[16][16], b[8][16], c[16][8];  // b by columns
  const auto part = [&](size_t operand, size_t k) { return w.row(in.operands[operand].parts[k]); };
  for (size_t i = 0; i < kLanes; ++i) {
    const size_t group = i / 4, place = 2 * (i % 4);
    for (size_t e = 0; e < 8; ++e)  // a: two entries in each of four registers
      a[group + (e / 2 % 2) * 8][place + e % 2 + e / 4 * 8] = from_bf16(part(1, e / 2)[i] >> 16 * (e % 2));
    for (size_t e = 0; e < 4; ++e) b[group][place + e % 2 + e / 2 * 8] = from_bf16(part(2, e / 2)[i] >> 16 * (e % 2));
    for (size_t e = 0; e < 4; ++e) c[group + e / 2 * 8][place + e % 2] = get<float>(part(3, e)[i]);
  }
  for (size_t i = 0; i < kLanes; ++i)
    for (size_t e = 0; e < 4; ++e) {
      const size_t row = i / 4 + e / 2 * 8, column = 2 * (i % 4) + e % 2;
      part(0, e)[i] = put(sum_of_products(a[row], b[column], c[row][column]));
    }
}
Execute select_product(Instruction& in, Modifiers& modifiers) {
  for (const char* const modifier :
       {"sync", "aligned", "m16n8k16", "row", "col", "bf16", "f32"})  // types: f32.bf16.bf16.f32
    if (!modifiers.take(modifier)) return nullptr;
  if (in.type != Type::f32 || in.source != Type::bf16 || in.operands.size() != 4) return nullptr;
  constexpr size_t registers[] = {4, 4, 2, 4};
  for (size_t k = 0; k < 4; ++k)
    if (in.operands[k].parts.size() != registers[k]) return nullptr;
  in.flow = Flow::converged;
  return multiply;
}

}  // namespace

const Operations& matrix_operations() {
  static const Operations all{{"ldmatrix", select_load}, {"mma", select_product}};
  return all;
}

}  // namespace isonorm::ptx
