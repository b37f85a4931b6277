// ZCA whitening: decorrelates pixels such that the result still looks like the image (Krizhevsky, Learning Multiple
// Layers of Features from Tiny Images, 2009, appendix A).
#pragma once

#include "io/data/loader.h"

namespace isonorm::papers {

struct ZcaOptions {
  double eps = 1e-5;       // added to every eigenvalue of the covariance, with pixels scaled by `scale`
  int64_t images = 10000;  // mean and covariance are taken over this many images, the first ones of the set (or all)
  data::PixelScale scale = {};
};

struct Zca {
  Tensor mean;    // [height width colours], with the scale's dtype
  Tensor matrix;  // symmetric [pixels, pixels]: (covariance + eps)^(-1/2)

  // Fits to the first images of a set (io/data/loader.h). Computes in f64, eigenvectors with LAPACK's dsyevd. Throws if
  // there are fewer than 2 images, eps is not positive, or an image has 32000 numbers or more.
  static Zca fit(const data::LabelledImages& set, const ZcaOptions& options = {});
  // (images - mean) matrix, on the CPU. images [n, height, width, colours], scaled as in the fit -> the same shape.
  // Throws if the number of pixels, the dtype or the device differs from the fit.
  Tensor whiten(const Tensor& images) const;
};

}  // namespace isonorm::papers
