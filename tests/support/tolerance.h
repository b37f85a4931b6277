// All tolerances. A value may differ from the double-precision reference by
//   constant x eps(dtype) x sqrt(reduction length) x scale.
#pragma once

namespace isonorm::test {

// scale: the entry's size; the entry's size and 1; the largest entry of the output; the largest of the inputs and the
// entry (if terms cancel).
enum class Scale { entry, unit, output, terms };

struct Tolerance {
  double constant;
  Scale scale;
  bool once = false;     // bf16: everything is computed in f32, with its eps, and only the result is rounded
  bool weights = false;  // bf16: the weights of a mean are rounded, too, by half an eps of the largest term
};

namespace tolerance {
inline constexpr Tolerance exact{0, Scale::entry};        // values are moved or selected
inline constexpr Tolerance rounded{1, Scale::entry};      // one IEEE operation, rounded once more to bf16
inline constexpr Tolerance elementary{12, Scale::entry};  // exp, log, erf and functions composed of them
inline constexpr Tolerance reduction{4, Scale::terms};    // sums, and elementary functions of sums
inline constexpr Tolerance product{6, Scale::terms};      // sums of products
inline constexpr Tolerance composite{16, Scale::terms};   // several of these in sequence, each rounded to the dtype
}  // namespace tolerance

// Gradients in f32 and bf16 compared with f64, relative to the largest entry; a backward has a few operations.
inline constexpr double kGradientConstant = 32;
// Gradients through strided inputs compared with contiguous ones, both in f64: only the order of sums may differ.
inline constexpr double kLayoutConstant = 32;

}  // namespace isonorm::test
