// ZCA whitening: pixels without correlation that still look like the image (Krizhevsky, Learning Multiple Layers of
// Features from Tiny Images, 2009, appendix A).
#pragma once

#include "data/loader.h"

namespace isonorm::papers {

struct ZcaOptions {
  double eps = 1e-5;       // added to every eigenvalue, of pixels as `scale` makes them
  int64_t images = 10000;  // of the set's first, that mean and covariance are taken over; at most as many as there are
  data::PixelScale scale = {};
};

struct Zca {
  Tensor mean;    // [height width colours], of the scale's dtype
  Tensor matrix;  // symmetric [pixels, pixels]: (covariance + eps)^(-1/2)

  // Of a set as gather_batch() takes it, computed in f64 by LAPACK's dsyevd. Throws where there are fewer than 2 images,
  // eps is not positive, or an image has 32000 numbers or more.
  static Zca fit(const data::LabelledImages& set, const ZcaOptions& options = {});
  // (images - mean) matrix: [n, height, width, colours] scaled as in the fit -> the same shape, on the CPU. Throws where
  // shape, dtype or device do not fit.
  Tensor whiten(const Tensor& images) const;
};

}  // namespace isonorm::papers
