// ConvPool-CNN-C, on which norms of convolutional networks are compared (Krizhevsky's data, Springenberg et al., 1412.6806; with a norm in every
// layer Salimans & Kingma, 1602.07868, and Zhang & Sennrich, 1910.07467).
#pragma once

#include <array>

#include "nn/group_norm.h"
#include "nn/module.h"

namespace isonorm::papers {

// What stands between a layer's product and its nonlinearity. none: a bias. batch: BatchNorm. weight: the weights are
// normalized (nn/weight_norm.h). The others by example, with a gain and a bias by channel: layer over all channels and places,
// instance over the places of a channel, rms the same without centring, prms over the leading eighth of the places
// (p = 12.5 %, as published for CIFAR-10). Of the last, dense layer all of these are over its outputs.
enum class ConvNorm { none, batch, weight, layer, instance, rms, prms };
inline constexpr std::array kConvNorms = {ConvNorm::none,     ConvNorm::batch, ConvNorm::weight, ConvNorm::layer,
                                          ConvNorm::instance, ConvNorm::rms,   ConvNorm::prms};
const char* name_of(ConvNorm norm);

struct ConvPoolOptions {
  int64_t image = 32;  // pixels of a side
  int64_t channels = 3;
  int64_t classes = 10;
  int64_t width = 96;    // of the first three layers, half that of the others
  double noise = 0.15;   // standard deviation, on the input
  double dropout = 0.5;  // behind each pooling
  ConvNorm norm = ConvNorm::none;
};

// A convolution, or with a window of 0 a dense layer, with its norm.
class NormedLayer : public nn::Module {
 public:
  NormedLayer(ConvNorm norm, int64_t in, int64_t out, int64_t window, int64_t padding = 0);
  // For weight norm, sets gain and bias by this input; nothing for the others.
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

// images [n, image, image, channels] -> logits [n, classes]: noise; three 3 x 3 convolutions of `width` outputs, padding
// 1; max pooling by 2; dropout; three of 2 width; pooling; dropout; a 3 x 3 of 2 width without padding; two 1 x 1; the mean over places; a
// dense layer. Leaky ReLU with slope 0.1 behind all but the last. Weights are normal with deviation sqrt(2 / inputs of
// an output). Throws where the image has no 16 pixels a side, which leave the last convolution 2 x 2 places, or other options do not fit.
class ConvPoolCnn : public nn::Module {
 public:
  explicit ConvPoolCnn(const ConvPoolOptions& options);
  // For weight norm, sets gains and biases by a batch, layer after layer, so that outputs have mean 0 and deviation 1
  // there; nothing for other norms. Without noise and dropout.
  void initialise(const Tensor& images);

  const ConvPoolOptions options;

 protected:
  Tensor forward(const Tensor& images) override;

 private:
  Tensor run(const Tensor& images, bool initialising);

  std::vector<NormedLayer*> layers_;
  std::vector<nn::Module*> between_;  // noise, and the dropout behind each pooling
};

}  // namespace isonorm::papers
