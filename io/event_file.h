// Event files of TensorBoard: numbers, histograms and pictures by name and step, as records of TFRecord whose content is a message `Event`
// (tensorflow/core/util/event.proto), written by hand.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "core/tensor.h"

namespace isonorm::io {

// CRC-32C (Castagnoli) of these bytes, and as TFRecord stores it: rotated by 15 bits and shifted by a constant.
uint32_t crc32c(std::string_view bytes);
uint32_t masked_crc32c(std::string_view bytes);

// A new file events.out.tfevents.SECONDS.isonorm.NUMBER in a folder, behind those that are there. TensorBoard reads all
// files of a folder as one run.
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
  // How the entries of `values` (any shape and dtype) are distributed: their number in each of 30 equal intervals between the
  // least and the greatest, as tf.summary.histogram. Entries that are not finite do not count; if there is no other one, nothing
  // is written. Throws Error (io).
  void histogram(std::string_view tag, int64_t step, const Tensor& values);
  // A picture [height, width, 1 or 3] of u8, or floating from 0 (black) to 1: numbers beyond that are cut, NaN is black. Throws,
  // naming the shape or the dtype, if it is something else, and Error (io).
  void image(std::string_view tag, int64_t step, const Tensor& picture);

 private:
  void summary(int64_t step, const std::string& value);  // a message Summary.Value
  void write(const std::string& event);

  std::string path_;
  std::FILE* file_ = nullptr;
};

}  // namespace isonorm::io
