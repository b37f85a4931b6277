// Text of modules, for people.
#pragma once

#include <iosfwd>
#include <string>
#include <typeinfo>

#include "nn/module.h"

namespace isonorm::nn {

// The name of the module's class, without namespace isonorm and unnamed namespaces: "nn::Linear", "Net".
std::string kind_of(const Module& module);
std::string kind_of(const std::type_info& type);

// A tree: each module's name, class and number of parameters, the shapes of its own tensors, and which of these are
// buffers or frozen. Equal neighbours share one line: "0 to 11".
std::string to_string(const Module& module);
std::ostream& operator<<(std::ostream& os, const Module& module);

}  // namespace isonorm::nn
