#include "training/spec/preprocessor.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/system/foreign_text.h"
#include "io/json_text.h"

namespace isonorm::training {
namespace {

constexpr int kBilinear = 2;  // PIL.Image.Resampling.BILINEAR
constexpr double kPixel = 1.0 / 255;
constexpr int64_t kMostEdge = int64_t{1} << 16;
constexpr std::string_view kComputed[] = {"do_resize", "do_center_crop", "do_rescale", "do_normalize",
                                          "do_convert_rgb"};
constexpr std::string_view kChangesSize[] = {"crop_pct", "size_divisor", "rescale_offset"};

class PreprocessorFile {
 public:
  PreprocessorFile(std::string_view text, int64_t side, int64_t channels)
      : values_(parsed(text)), side_(side), channels_(channels) {
    check(values_.is_object(), "it is ", Shown{text}, ", expected a JSON object");
    for (const char* key : {"feature_extractor_type", "image_processor_type"})
      if (const json* type = find(key); type && type->is_string()) type_ = type->get<std::string>();
  }

  Preprocessor read() const {
    for (const auto& [key, value] : values_.items()) {
      const bool asks = !value.is_null() && value != false;
      const bool known = std::ranges::count(kComputed, key) > 0;
      check(known || !asks || !(key.starts_with("do_") || std::ranges::count(kChangesSize, key) > 0), "\"", key,
            "\" is ", Shown{dump(value)}, ", which this program does not compute");
    }
    return {scale(), fit()};
  }

 private:
  const json* find(const char* key) const {
    const auto at = values_.find(key);
    return at == values_.end() || at->is_null() ? nullptr : &*at;
  }

  bool of_vit() const { return type_.empty() || type_.starts_with("ViT"); }

  // The value, or the default of ViTImageProcessor.
  json value(const char* key, const json& otherwise) const {
    if (const json* there = find(key)) return *there;
    check(of_vit(), "there is no \"", key, "\", whose default in ", Shown{type_}, " is unknown");
    return otherwise;
  }

  bool flag(const char* key, bool otherwise) const {
    const json flag = value(key, otherwise);
    check(flag.is_boolean(), "\"", key, "\" is ", Shown{dump(flag)}, ", expected true or false");
    return flag.get<bool>();
  }

  double positive(const char* key, double otherwise) const {
    const json* number = find(key);
    if (!number) return otherwise;
    const double x = number->is_number() ? number->get<double>() : 0;
    check(x > 0 && std::isfinite(x), "\"", key, "\" is ", Shown{dump(*number)}, ", expected a positive number");
    return x;
  }

  // One number for each channel.
  std::vector<double> numbers(const char* key) const {
    const json* list = find(key);
    check(list != nullptr, "there is no \"", key, "\"");
    std::vector<double> all;
    if (list->is_number()) all.assign(static_cast<size_t>(channels_), list->get<double>());
    if (list->is_array())
      for (const json& x : *list) all.push_back(x.is_number() ? x.get<double>() : NAN);
    const bool good = std::ranges::all_of(all, [](double x) { return std::isfinite(x); });
    check(good && std::ssize(all) == channels_, "\"", key, "\" is ", Shown{dump(*list)}, ", expected ", channels_,
          channels_ == 1 ? " number" : " numbers, one for each channel");
    return all;
  }

  // (p r - m) / s = (p / 255 - m / 255 r) / (s / 255 r), where r is the factor of the pixel p.
  data::PixelScale scale() const {
    const double factor = flag("do_rescale", true) ? positive("rescale_factor", kPixel) : 1;
    const double by = std::abs(255 * factor - 1) < 1e-12 ? 1 : 255 * factor;
    const auto channels = static_cast<size_t>(channels_);
    data::PixelScale scale{.mean = std::vector<double>(channels, 0), .std = std::vector<double>(channels, 1)};
    if (flag("do_normalize", true)) scale.mean = numbers("image_mean"), scale.std = numbers("image_std");
    for (double& x : scale.mean) x /= by;
    for (double& x : scale.std) {
      check(x > 0, "\"image_std\" has ", x, ", expected positive numbers");
      x /= by;
    }
    const auto finite = [](double x) { return std::isfinite(x); };
    check(std::ranges::all_of(scale.mean, finite) && std::ranges::all_of(scale.std, finite) &&
              std::ranges::all_of(scale.std, [](double x) { return x > 0; }),
          "\"rescale_factor\" is ", factor, ", which is too far from 1 / 255");
    return scale;
  }

  int64_t length(const char* key, const json& value) const {
    const int64_t pixels = whole_number(value).value_or(0);
    check(pixels >= 1 && pixels <= kMostEdge, "\"", key, "\" is ", Shown{dump(values_.at(key))},
          ", expected lengths from 1 to ", kMostEdge);
    return pixels;
  }
  // 224 or {"height": 224, "width": 224}; 0 if it is another object.
  int64_t square(const char* key, const json& value) const {
    if (!value.is_object()) return length(key, value);
    if (!value.contains("height") || !value.contains("width") || value.size() != 2) return 0;
    check(value["height"] == value["width"], "\"", key, "\" is ", Shown{dump(value)}, ", expected a square");
    return length(key, value["height"]);
  }

  data::PictureFit fit() const {
    check(flag("do_resize", true), "\"do_resize\" is false: this program resizes pictures to the side of the images");
    const json filter = value("resample", kBilinear);
    check(filter == kBilinear, "\"resample\" is ", Shown{dump(filter)}, ", expected ", kBilinear,
          ": this program resizes by BILINEAR");
    const json* size = find("size");
    check(size != nullptr, "there is no \"size\"");
    data::PictureFit fit;
    if (size->is_object() && size->size() == 1 && size->contains("shortest_edge"))
      fit = {.edge = length("size", (*size)["shortest_edge"])};
    else
      fit = {.edge = size->is_object() || of_vit() ? square("size", *size) : 0, .stretch = true};
    check(fit.edge > 0, "\"size\" is ", Shown{dump(*size)},
          R"(, expected a number, {"height", "width"} or {"shortest_edge"})");
    const bool crops = flag("do_center_crop", false);
    check(crops || fit.stretch, "\"size\" is ", Shown{dump(*size)},
          " without \"do_center_crop\": the images are no squares");
    int64_t side = fit.edge;
    if (crops) {
      const json* crop = find("crop_size");
      check(crop != nullptr, "there is no \"crop_size\"");
      side = square("crop_size", *crop);
      check(side > 0 && side <= fit.edge, "\"crop_size\" is ", Shown{dump(*crop)}, ", expected a square of at most ",
            fit.edge, ", as \"size\" is");
    }
    check(side == side_, "\"", crops ? "crop_size" : "size", "\" gives images with a side of ", side,
          " pixels, the model's have ", side_);
    return fit;
  }

  json values_;
  int64_t side_, channels_;
  std::string type_;
};

}  // namespace

std::string Preprocessor::text(int64_t side, int64_t channels) const {
  const int64_t edge = fit.edge == 0 ? side : fit.edge;
  const auto square = [](int64_t length) { return json{{"height", length}, {"width", length}}; };
  const auto list = [&](const std::vector<double>& x) {
    return x.size() == 1 ? std::vector(static_cast<size_t>(channels), x[0]) : x;
  };
  return dump({{"image_processor_type", "BitImageProcessor"},
               {"do_convert_rgb", channels == 3},
               {"do_resize", true},
               {"size", fit.stretch ? square(edge) : json{{"shortest_edge", edge}}},
               {"resample", kBilinear},
               {"do_center_crop", true},
               {"crop_size", square(side)},
               {"do_rescale", true},
               {"rescale_factor", kPixel},
               {"do_normalize", true},
               {"image_mean", list(scale.mean)},
               {"image_std", list(scale.std)}});
}

Preprocessor Preprocessor::read(std::string_view text, int64_t side, int64_t channels) {
  return PreprocessorFile(text, side, channels).read();
}

Preprocessor preprocessor_of(const DataSpec& spec, int64_t side, int64_t channels) {
  if (spec.preprocessor.empty()) return {};
  const Scope scope("the model's preprocessor");
  return Preprocessor::read(spec.preprocessor, side, channels);
}

}  // namespace isonorm::training
