// Event files of TensorBoard: scalars, histograms and images by name and step. The file is a sequence of TFRecord
// records, each an `Event` message (tensorflow/core/util/event.proto), encoded by hand.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "core/tensor.h"

namespace isonorm::io {

// CRC-32C (Castagnoli) of the bytes. masked_crc32c() is the form that TFRecord stores: rotated by 15 bits and shifted
// by a constant.
uint32_t crc32c(std::string_view bytes);
uint32_t masked_crc32c(std::string_view bytes);

// A new file events.out.tfevents.SECONDS.isonorm.NUMBER in a folder. It sorts after the event files that exist:
// TensorBoard reads all files of a folder as one run, in the order of their names.
class EventFile {
 public:
  // Makes the folder and its parents. TensorBoard hides the values in earlier files of the folder from step `first` on.
  // Throws Error (io).
  EventFile(const std::string& folder, int64_t first);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  // Stored as f32. Throws Error (io).
  void scalar(std::string_view tag, int64_t step, double value);
  // A histogram of the entries of `values` (any shape and dtype), as tf.summary.histogram makes it: counts in 30 equal
  // intervals between the smallest and the largest entry. Infinite entries and NaN are left out. Writes nothing if no
  // entry is left. Throws Error (io).
  void histogram(std::string_view tag, int64_t step, const Tensor& values);
  // An image [height, width, 1 or 3], either u8 or floating from 0 (black) to 1. Floating values are clamped to [0, 1];
  // NaN is black. Throws, naming the shape or the dtype, on any other tensor; throws Error (io) if writing fails.
  void image(std::string_view tag, int64_t step, const Tensor& picture);

 private:
  void summary(int64_t step, const std::string& value);  // a message Summary.Value
  void write(const std::string& event);

  std::string path_;
  std::FILE* file_ = nullptr;
};

}  // namespace isonorm::io
