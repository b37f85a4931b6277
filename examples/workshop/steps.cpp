#include "examples/workshop/steps.h"

namespace isonorm::workshop {
namespace {

const Step kSteps[] = {
    {"1 the formula", {"formula_forward", formula::forward}, {"formula_backward", formula::backward}},
    {"2 a row at a time", {"rows_forward", rows::forward}, {"rows_backward", rows::backward}},
    {"3 f32, partial sums",
     {"sums_forward_base", sums::forward<Isa::base>},
     {"sums_backward_base", sums::backward<Isa::base>}},
    {"  for this machine",
     {"sums_forward", []<Isa I>() { return &sums::forward<I>; }},
     {"sums_backward", []<Isa I>() { return &sums::backward<I>; }}},
    {"4 lanes",
     {"lanes_forward", []<Isa I>() { return &lanes::forward<I>; }},
     {"lanes_backward", []<Isa I>() { return &lanes::backward<I>; }}},
    {"5 threads",
     {"threads_forward", []<Isa I>() { return &threads::forward<I>; }},
     {"threads_backward", []<Isa I>() { return &threads::backward<I>; }}},
    {"6 memory",
     {"memory_forward", []<Isa I>() { return &memory::forward<I>; }},
     {"memory_backward", []<Isa I>() { return &memory::backward<I>; }}},
    {"  isonorm's kernel", kernels::norm_forward, kernels::norm_backward},
};

}  // namespace

std::span<const Step> steps() { return kSteps; }

}  // namespace isonorm::workshop
