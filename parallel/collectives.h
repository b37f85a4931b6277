// Functions over the ranks of a group, with their derivatives, for modules and objectives. Every rank calls them in the
// same order, also in its backward, and the group outlives the graph. All throw as distributed::Group does, also if the
// ranks' tensors differ in dtype or size.
#pragma once

#include "core/tensor.h"
#include "distributed/group.h"

namespace isonorm::parallel {

// The sum of all ranks' x, a new tensor without graph: for a hook on a gradient.
Tensor all_reduced(const Tensor& x, distributed::Group& group);

// Parts of a sum, one a rank, of the same shape: their sum, on every rank. The gradient goes to each part as it is. (g of Shoeybi et al.,
// Megatron-LM, 1909.08053, section 3.)
Tensor sum_of_parts(const Tensor& part, distributed::Group& group);
// x itself, which all ranks have and each uses in its own way: their gradients are summed. (f of 1909.08053.)
Tensor shared_by_ranks(const Tensor& x, distributed::Group& group);

// Of x that all ranks have, the rank-th of as many equal parts along `dim`; gradients are gathered. Throws where they do not divide.
Tensor own_part(const Tensor& x, int dim, distributed::Group& group);
// The parts of all ranks along `dim`, which each uses in its own way; gradients are summed, and each rank has its part. (g bar of Korthikanti
// et al., 2205.05198, section 4.2.2; f bar is sum_of_own_part().) known: the result,
// where every rank has it already.
Tensor gathered_parts(const Tensor& part, int dim, distributed::Group& group, const Tensor& known = {});
// The same rows, which all ranks use in the same way: each has the gradient of its part already.
Tensor whole_of_parts(const Tensor& part, int dim, distributed::Group& group);
// Of the sum of all ranks' x this rank's part along `dim`; gradients are gathered. Throws where they do not divide.
Tensor sum_of_own_part(const Tensor& x, int dim, distributed::Group& group);

}  // namespace isonorm::parallel
