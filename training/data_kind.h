// Finds the kind of data at a path, and the model that reads it.
#pragma once

#include <optional>
#include <string>

#include "training/model_row.h"

namespace isonorm::training {

// images: a folder with a set of images, or the name of a published set (io/data/image_sets.h). pairs: a folder with
// source.txt and target.txt. text: anything else that is not a folder. Nothing if `data` is empty, if nothing is there,
// or if the folder holds none of these. Throws as data::image_folder().
std::optional<Input> kind_of_data(const std::string& data);
// The first of kModels that reads data of this kind; null if kind_of_data() is nothing. Throws as kind_of_data().
const ModelRow* model_for(const std::string& data);

// "a folder of images", "a text file": the data that such a model reads.
const char* data_noun(Input input);

}  // namespace isonorm::training
