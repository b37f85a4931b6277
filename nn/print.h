// Text of modules, for people.
#pragma once

#include <iosfwd>
#include <string>
#include <typeinfo>

#include "nn/module.h"

namespace isonorm::nn {

// The name of its class, without isonorm's own namespace and those that only one source sees: "nn::Linear", "Net".
std::string kind_of(const Module& module);
std::string kind_of(const std::type_info& type);

// A tree: of each module its name, class, number of parameters and the shapes of its own tensors, and of these which are
// buffers and which are frozen. Neighbours that are alike stand in one line: "0 to 11".
std::string to_string(const Module& module);
std::ostream& operator<<(std::ostream& os, const Module& module);

}  // namespace isonorm::nn
