#include "autograd/print_graph.h"

#include <iostream>
#include <map>
#include <vector>

#include "autograd/engine.h"
#include "autograd/frontier.h"
#include "core/print.h"

namespace isonorm {
namespace {

using autograd::Edge, autograd::Node;

// The nodes in the engine's order, for they come from the engine's own queue.
std::vector<Node*> visited(Node& root) {
  std::vector<Node*> order;
  autograd::Frontier frontier;
  frontier.push(root);
  while (Node* const n = frontier.next()) {
    order.push_back(n);
    for (const Edge& e : n->inputs)
      if (e.node) frontier.push(*e.node);
  }
  return order;
}

// "leaf fc1.weight f32 [4, 3]"
std::string title(Node& n, const TensorMap& names) {
  std::string s = n.name;
  for (const auto& [name, tensor] : names)
    if (tensor.impl().node.get() == &n) s += text(' ', name);
  for (const autograd::NodeOutput& o : n.outputs) s += text(' ', o.dtype, ' ', o.shape);
  return s;
}

}  // namespace

void print_graph(std::ostream& out, const Tensor& y, const PrintGraphOptions& options) {
  check(requires_grad(y), "print_graph: the tensor of shape ", y.shape(), " does not require a gradient");
  const std::vector<Node*> order = visited(*y.impl().node);
  std::map<const Node*, size_t> number;
  for (const Node* n : order) number.emplace(n, number.size());

  std::string lines;
  for (Node* const n : order) {
    const size_t i = number.at(n);
    const std::string name = text(i, ": ", title(*n, options.names));
    std::string inputs, edges;
    for (const Edge& e : n->inputs) {
      inputs += e.node ? text(' ', number.at(e.node.get()), e.output > 0 ? text(':', e.output) : "") : " -";
      if (e.node) edges += text("  ", i, " -> ", number.at(e.node.get()), '\n');
    }
    lines += options.dot ? text("  ", i, " [label=\"", name, "\"]\n", edges)
                         : text(name, inputs.empty() ? "" : " ->", inputs, '\n');
  }
  out << (options.dot ? text("digraph backward {\n", lines, "}\n") : lines);
}

void print_graph(const Tensor& y, const PrintGraphOptions& options) { print_graph(std::cout, y, options); }

}  // namespace isonorm
