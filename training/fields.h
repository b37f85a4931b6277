// The options of Transformers, streams and trainings, one line each, with help and limits.
#pragma once

#include "training/options/option.h"
#include "training/training_options.h"

namespace isonorm::training {

template <> struct ValueNames<nn::Precision> { static constexpr const auto& names = nn::kPrecisionNames; };
template <> struct ValueNames<nn::Activation> { static constexpr const auto& names = nn::kActivationNames; };
template <> struct ValueNames<nn::Initialisation> { static constexpr const auto& names = nn::kInitialisationNames; };
template <> struct ValueNames<NormKind> {  // the norms that a plain model may have
  static constexpr const char* names[] = {name_of(NormKind::none), name_of(NormKind::layer), name_of(NormKind::rms)};
};
template <> struct ValueNames<nn::Positions> { static constexpr const auto& names = nn::kPositionsNames; };
template <> struct Word<streams::Form> : OneOf<streams::Form, Word<streams::Form>> {
  static std::vector<std::string> names() { return streams::names_of(streams::all_forms()); }
  static streams::Form at(size_t i) { return streams::all_forms()[i]; }
  static std::string written(streams::Form form) { return name_of(form); }
};
template <> struct ValueNames<streams::Stored> { static constexpr const char* names[] = {"raw", "mapped"}; };
template <> struct ValueNames<optim::Decay> { static constexpr const auto& names = optim::kDecayNames; };
template <> struct ValueNames<data::IdWidth> { static constexpr const auto& names = data::kIdWidthNames; };
template <> struct ValueNames<data::Task> { static constexpr const auto& names = data::kTaskNames; };

void fields(nn::TransformerOptions& options, Fields& f);
void fields(streams::StreamOptions& options, Fields& f);
void fields(TrainingOptions& options, Fields& f);  // without the model's options

bool is_of_streams(std::string_view name);  // true if it is an option of streams

// The model's options, then the training's. They refer to `options`.
std::vector<Option> options_of(TrainingOptions& options);

}  // namespace isonorm::training
