// ConvPool-CNN-C, a convolutional network for comparing norms (Krizhevsky's data; Springenberg et al., 1412.6806). With
// a norm in every layer: Salimans & Kingma, 1602.07868, and Zhang & Sennrich, 1910.07467.
#pragma once

#include <array>

#include "nn/group_norm.h"
#include "nn/module.h"

namespace isonorm::papers {

// The norm between a layer's product and its nonlinearity.
// none: a bias only. batch: BatchNorm. weight: weight normalization (nn/weight_norm.h).
// The others normalize each example and have a gain and a bias for each channel. layer: over all channels and
// positions. instance: over the positions of each channel. rms: as instance, without centring. prms: as rms, with the
// mean square over the first eighth of the positions (p = 12.5 %, as published for CIFAR-10).
// In the last, dense layer the example norms are over the outputs.
enum class ConvNorm { none, batch, weight, layer, instance, rms, prms };
inline constexpr std::array kConvNorms = {ConvNorm::none,     ConvNorm::batch, ConvNorm::weight, ConvNorm::layer,
                                          ConvNorm::instance, ConvNorm::rms,   ConvNorm::prms};
const char* name_of(ConvNorm norm);

struct ConvPoolOptions {
  int64_t image = 32;  // pixels of a side
  int64_t channels = 3;
  int64_t classes = 10;
  int64_t width = 96;    // channels of the first three layers; the others have twice as many
  double noise = 0.15;   // standard deviation of the noise on the input
  double dropout = 0.5;  // after each pooling
  ConvNorm norm = ConvNorm::none;
};

// A convolution, or a dense layer if `window` is 0, with its norm.
class NormedLayer : public nn::Module {
 public:
  NormedLayer(ConvNorm norm, int64_t in, int64_t out, int64_t window, int64_t padding = 0);
  // Weight norm: sets gain and bias from this input. Does nothing for other norms.
  void initialise(const Tensor& x);

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  Tensor product(const Tensor& x, const Tensor& gain, const Tensor& offset) const;

  ConvNorm norm_;
  int64_t padding_;
  nn::Parameter &weight_, &gain_, &bias_;  // gain and bias are undefined if the norm has none
  nn::BatchNorm* batch_ = nullptr;
};

// images [n, image, image, channels] -> logits [n, classes]. Gaussian noise; three 3 x 3 convolutions with `width`
// channels, padding 1; 2 x 2 max pooling; dropout; three more with 2 width channels; pooling; dropout; a 3 x 3
// convolution with 2 width channels without padding; two 1 x 1 convolutions; the mean over positions; a dense layer.
// Leaky ReLU with slope 0.1 after every layer but the last. Weights are normal with standard deviation sqrt(2 /
// fan-in).
// Throws if the image has fewer than 16 pixels a side (with 16, the last 3 x 3 convolution has 2 x 2 outputs) or if a
// size is not positive.
class ConvPoolCnn : public nn::Module {
 public:
  explicit ConvPoolCnn(const ConvPoolOptions& options);
  // Weight norm: sets gains and biases from a batch, layer after layer, so that the outputs for this batch have mean 0
  // and standard deviation 1. Runs without noise and dropout. Does nothing for other norms.
  void initialise(const Tensor& images);

  const ConvPoolOptions options;

 protected:
  Tensor forward(const Tensor& images) override;

 private:
  Tensor run(const Tensor& images, bool initialising);

  std::vector<NormedLayer*> layers_;
  std::vector<nn::Module*> between_;  // noise, and the dropout after each pooling
};

}  // namespace isonorm::papers
