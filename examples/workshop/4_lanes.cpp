#include "examples/workshop/4_lanes.h"

#include <algorithm>

namespace isonorm::workshop::lanes {

template <Isa I> void forward(const NormSpec& spec, const NormOutputs& out, const NormInputs& in) {
  const int64_t rows = in.x.size(0), w = in.x.size(1);
  const float *x = in.x.data<float>(), *gain = in.gain.data<float>(), *bias = in.bias.data<float>();
  float *y = out.y.mutable_data<float>(), *stats = out.stats.mutable_data<float>();
  for (int64_t r = 0; r < rows; ++r)
    forward_row(y + r * w, stats + 2 * r, x + r * w, gain, bias, w, static_cast<float>(spec.eps));
}

template <Isa I> void backward(const NormSpec&, const NormGradients& out, const NormSaved& in) {
  const int64_t rows = in.x.size(0), w = in.x.size(1);
  const float *x = in.x.data<float>(), *dy = in.dy.data<float>(), *stats = in.stats.data<float>();
  const float* gain = in.gain.data<float>();
  float* dx = out.dx.mutable_data<float>();
  float *dgain = out.dgain.mutable_data<float>(), *dbias = out.dbias.mutable_data<float>();
  std::fill_n(dgain, w, 0.f);
  std::fill_n(dbias, w, 0.f);
  for (int64_t r = 0; r < rows; ++r)
    backward_row(dx + r * w, dgain, dbias, dy + r * w, x + r * w, stats + 2 * r, gain, w);
}

template void forward<kTarget>(const NormSpec&, const NormOutputs&, const NormInputs&);
template void backward<kTarget>(const NormSpec&, const NormGradients&, const NormSaved&);

}  // namespace isonorm::workshop::lanes
