// The names of classes: those of published sets, and how messages list them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace isonorm::data {

// The class names of CIFAR-10, or of MNIST or Fashion-MNIST if the folder says which of the two it is: `dir`, or the folder around it if that is `raw`, is
// named mnist, fashion_mnist, FashionMNIST, ... Empty for any other folder.
std::vector<std::string> published_classes(const std::string& dir);

// The place of a name in the list. Throws, naming `place`, if it is not there, or there twice (ImageNet has two classes "crane").
int64_t class_index(const std::vector<std::string>& classes, const std::string& name, const std::string& place);

// "cat, dog, and 8 more", for a message.
std::string class_list(const std::vector<std::string>& classes);

}  // namespace isonorm::data
