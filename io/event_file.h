// Event files of TensorBoard: numbers by name and step, as records of TFRecord whose content is a message `Event`
// (tensorflow/core/util/event.proto), written by hand.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

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

 private:
  void write(const std::string& event);

  std::string path_;
  std::FILE* file_ = nullptr;
};

}  // namespace isonorm::io
