// A graph as text for people: which nodes a backward takes, in which order, and where each passes its gradients.
#pragma once

#include <iosfwd>

#include "core/tensor_map.h"

namespace isonorm {

struct PrintGraphOptions {
  TensorMap names = {};  // of leaves, such as state_dict() of a model
  bool dot = false;      // the language of Graphviz: a node per op, an edge per gradient
};

// Prints the graph of y, whether or not a backward has released it. Line i is the node that backward(y) takes as number
// i: its op, shape and dtype of each output, and the numbers of the nodes that its rule passes gradients to. "3:1" is
// output 1 of node 3; "-" is an input that takes no gradient. Leaves come after all ops. A part that
// checkpoint() will record again is one node. Throws if y does not require a gradient, or if a backward is running in
// its graph.
void print_graph(std::ostream& out, const Tensor& y, const PrintGraphOptions& options = {});
// To the standard output.
void print_graph(const Tensor& y, const PrintGraphOptions& options = {});

}  // namespace isonorm
