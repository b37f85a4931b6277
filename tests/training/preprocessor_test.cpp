// preprocessor_config.json: the numbers that transformers' AutoImageProcessor makes of pictures
// (tests/fixtures/image_processor.py), and files that ask for something else.
#include "training/spec/preprocessor.h"

#include <cmath>

#include "io/safetensors.h"
#include "tests/support/catch.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using training::Preprocessor;

namespace {

std::string words(const Preprocessor& p, const std::string& more) {
  std::string all = p.text(12, 3);
  return all.substr(0, all.size() - 1) + "," + more + "}";  // of two entries of a name the last one counts
}

}  // namespace

TEST_CASE("preprocessor: square pictures become AutoImageProcessor's numbers, within 1 of 255") {
  const SafetensorsFile file("tests/fixtures/image_processor.safetensors");
  const TensorMap fixtures = load_safetensors("tests/fixtures/image_processor.safetensors");
  int cases = 0;
  for (const auto& [name, config] : file.metadata()) {
    if (name == "transformers") continue;
    CAPTURE(name);
    const Tensor image = fixtures.at(name + ".image"), pixels = fixtures.at(name + ".pixels");
    const int64_t side = pixels.size(0);
    // The configuration as it was written, and after our own text() of it.
    const Preprocessor read = Preprocessor::read(config, side, 3);
    for (const Preprocessor& p : {read, Preprocessor::read(read.text(side, 3), side, 3)}) {
      data::LabelledImages set{data::square_of(image, side, p.fit), from_vector(std::vector<int64_t>{0}, {1})};
      set.images = from_vector(set.images.to_vector<uint8_t>(), {1, side, side, 3});
      data::PixelScale scale = p.scale;
      scale.dtype = DType::f64;
      const auto ours = data::slice_batch(set, 0, 1, scale).images.to_vector<double>();
      const auto theirs = pixels.to_vector<double>();
      REQUIRE(ours.size() == theirs.size());
      double most = 0;
      for (size_t i = 0; i < ours.size(); ++i)
        most = std::max(most, std::abs(ours[i] - theirs[i]) * 255 * scale.std[i % 3]);  // of 255
      CHECK(most < 1 + 1e-3);  // theirs are computed in f32, of numbers below 3 / 0.2: 255 * 15 eps
    }
    ++cases;
  }
  CHECK(cases == 9);
}

TEST_CASE("preprocessor: factor, mean and deviation of any scale are converted to pixels / 255") {
  const std::string text =
      R"({"size": 4, "rescale_factor": 0.0078125, "image_mean": [1, 0.5, 0.25], "image_std": [0.5, 0.25, 2]})";
  const Preprocessor p = Preprocessor::read(text, 4, 3);
  for (const int pixel : {0, 100, 255})
    for (size_t c = 0; c < 3; ++c) {
      const double want = (pixel / 128.0 - std::array{1.0, 0.5, 0.25}[c]) / std::array{0.5, 0.25, 2.0}[c];
      CHECK((pixel / 255.0 - p.scale.mean[c]) / p.scale.std[c] == Approx(want).margin(1e-14));
    }
  CHECK(p.fit == data::PictureFit{.edge = 4, .stretch = true});
  const Preprocessor grey{{.mean = {0.1307}, .std = {0.3081}}};
  CHECK(Preprocessor::read(grey.text(28, 1), 28, 1).scale.mean == std::vector{0.1307});
  const Preprocessor colours = Preprocessor::read(grey.text(28, 3), 28, 3);
  CHECK((colours.scale.mean == std::vector(3, 0.1307) && colours.scale.std == std::vector(3, 0.3081)));
}

TEST_CASE("preprocessor: what this program does not compute is refused in a line that names the key") {
  const Preprocessor p{{.mean = {0.5}, .std = {0.25}}};
  CHECK_NOTHROW(Preprocessor::read(words(p, R"("do_pad": false, "crop_pct": null)"), 12, 3));
  for (const auto& [entry, says] : std::vector<std::pair<std::string, std::string>>{
           {R"("resample": 3)", R"("resample" is '3', expected 2: this program resizes by BILINEAR)"},
           {R"("do_resize": false)", R"("do_resize" is false)"},
           {R"("do_pad": true)", R"("do_pad" is 'true', which this program does not compute)"},
           {R"("crop_pct": 0.9)", R"("crop_pct" is '0.9', which this program)"},
           {R"("do_center_crop": false)", "without \"do_center_crop\": the images are no squares"},
           {R"("crop_size": {"height": 12, "width": 11})",
            R"("crop_size" is '{"height":12,"width":11}', expected a square)"},
           {R"("crop_size": {"height": 14, "width": 14})", "expected a square of at most 12"},
           {R"("crop_size": 11)", R"("crop_size" gives images with a side of 11 pixels, the model's have 12)"},
           {R"("size": {"longest_edge": 12})", R"("size" is '{"longest_edge":12}', expected a number)"},
           {R"("size": 12)", R"("size" is '12', expected a number)"},  // of BitImageProcessor
           {R"("size": {"shortest_edge": 1e99})", "expected lengths from 1 to 65536"},
           {R"("image_mean": [0.5, 0.5])", R"("image_mean" is '[0.5,0.5]', expected 3 numbers, one for each channel)"},
           {R"("image_mean": null)", R"(there is no "image_mean")"},
           {R"("image_std": [1, 0, 1])", R"("image_std" has 0, expected positive numbers)"},
           {R"("rescale_factor": 1e-320)", "which is too far from 1 / 255"},
           {R"("rescale_factor": -1)", R"("rescale_factor" is '-1', expected a positive number)"},
           {R"("do_rescale": "yes")", R"("do_rescale" is '"yes"', expected true or false)"},
           {R"("do_rescale": null)", R"(there is no "do_rescale", whose default in 'BitImageProcessor' is unknown)"}}) {
    CAPTURE(entry);
    CHECK_THROWS_WITH(Preprocessor::read(words(p, entry), 12, 3), Contains(says));
  }
  CHECK_THROWS_WITH(Preprocessor::read("[1]", 12, 3), Contains("expected a JSON object"));
  CHECK_THROWS_WITH(Preprocessor::read(R"({"size": 8, "do_normalize": false})", 12, 3),
                    Contains("\"size\" gives images with a side of 8 pixels, the model's have 12"));
}
