// A LayerNorm and its gradient: inputs, and room for the results of a step.
#pragma once

#include <isonorm/isonorm.h>

#include "examples/workshop/steps.h"

namespace isonorm::workshop {

struct Task {
  NormSpec spec;
  NormInputs in;
  Tensor dy;
  NormOutputs out;
  NormGradients gradients;

  // Rows of normal numbers around `mean`.
  Task(int64_t rows, int64_t width, double mean = 0, double eps = 1e-5)
      : spec{NormKind::layer, eps},
        in{randn({rows, width}) + mean, {}, randn({width}), randn({width})},
        dy(randn({rows, width})),
        out{empty({rows, width}), {}, empty({rows, 2})},
        gradients{empty({rows, width}), empty({width}), empty({width})} {}

  void forward(const Step& step) const { step.forward.on(kCpu, spec, out, in); }
  // The backward of the last forward.
  void backward(const Step& step) const {
    step.backward.on(kCpu, spec, gradients, {dy, {}, in.x, false, out.stats, in.gain});
  }
};

}  // namespace isonorm::workshop
