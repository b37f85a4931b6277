// The options of Transformers, streams and trainings: each a line, with its help and limits.
#pragma once

#include "training/option.h"
#include "training/training_options.h"

namespace isonorm::training {

template <> struct ValueNames<nn::Precision> { static constexpr const auto& names = nn::kPrecisionNames; };

void fields(nn::TransformerOptions& options, Fields& f);
void fields(streams::StreamOptions& options, Fields& f);
void fields(TrainingOptions& options, Fields& f);  // but for the model's

}  // namespace isonorm::training
