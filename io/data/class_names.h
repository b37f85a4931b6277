// Class names of published data sets, and lists of class names for messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace isonorm::data {

// The class names of CIFAR-10, or of MNIST or Fashion-MNIST if the folder's name tells which (mnist, fashion_mnist,
// FashionMNIST, ...). If `dir` is named `raw`, its parent's name counts. Empty for any other folder.
std::vector<std::string> published_classes(const std::string& dir);

// The index of a name in the list. Throws, naming `place`, if the name is missing or occurs twice (ImageNet has two
// classes "crane").
int64_t class_index(const std::vector<std::string>& classes, const std::string& name, const std::string& place);

// "cat, dog, and 8 more", for a message.
std::string class_list(const std::vector<std::string>& classes);

}  // namespace isonorm::data
