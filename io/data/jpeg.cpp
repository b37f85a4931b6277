#include "io/data/decoder.h"

#include <cstdio>  // needed by jpeglib.h

#include <jpeglib.h>
#include <jerror.h>

#include <algorithm>
#include <vector>

#include "io/data/picture.h"

namespace isonorm::data {
namespace {

// A file may have thousands of scans, and each may visit every pixel. kMostScanned limits the visited pixels.
// kMostScans limits the scans, like libjpeg-turbo under TJFLAG_LIMITSCANS. Programs write about 10 scans.
constexpr int64_t kMostScanned = int64_t{1} << 30, kMostScans = 500;

// libjpeg's structures. Callbacks find this object by client_data.
struct JpegFile {
  JpegFile() {
    jpeg.err = jpeg_std_error(&errors);
    jpeg.client_data = this;
    errors.error_exit = [](j_common_ptr j) { of(j).fail(j); };
    errors.emit_message = [](j_common_ptr j, int level) {
      if (level < 0) of(j).warn(j);
    };
    progress.progress_monitor = [](j_common_ptr j) { of(j).check_scans(); };
  }
  ~JpegFile() { jpeg_destroy_decompress(&jpeg); }
  JpegFile(const JpegFile&) = delete;
  JpegFile& operator=(const JpegFile&) = delete;

  static JpegFile& of(j_common_ptr j) { return *static_cast<JpegFile*>(j->client_data); }
  [[noreturn]] void fail(j_common_ptr j) {
    char why[JMSG_LENGTH_MAX];
    errors.format_message(j, why);
    report.fail(why);
  }
  void warn(j_common_ptr j) {
    if (errors.msg_code == JWRN_JPEG_EOF) report.fail("the file is cut off");
    char why[JMSG_LENGTH_MAX];
    errors.format_message(j, why);
    report.warn(why);
  }
  void check_scans() {
    const int64_t width = jpeg.image_width, height = jpeg.image_height;
    const int64_t most = std::min(kMostScans, kMostScanned / (height * width));
    if (jpeg.input_scan_number <= most) return;
    report.because(text("it has over ", most, " scans, the limit for ", width, " x ", height, " pixels"));
    report.leave();
  }

  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  DecoderReport report;
};

// Converts a row of CMYK to RGB like Pillow's convert("RGB"). The CMYK is inverted, as Adobe's programs store it: each
// value is the light that the ink lets through.
void rgb_of_cmyk(const uint8_t* cmyk, int64_t width, uint8_t* rgb) {
  for (const uint8_t* const end = cmyk + 4 * width; cmyk < end; cmyk += 4)
    for (int c = 0; c < 3; ++c) *rgb++ = static_cast<uint8_t>((cmyk[c] * cmyk[3] + 127) / 255);
}

}  // namespace

Tensor read_jpeg(std::span<const uint8_t> bytes, std::string& warning) {
  constexpr const char* what = "the JPEG cannot be decoded";
  JpegFile file;
  jpeg_decompress_struct& jpeg = file.jpeg;
  file.report.run(what, [&] {
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, bytes.data(), bytes.size());
    jpeg_read_header(&jpeg, TRUE);
  });
  const int64_t height = jpeg.image_height, width = jpeg.image_width;
  // A block of 8 x 8 pixels takes at least a bit. Arithmetic coding may take less.
  const Tensor image = picture_of(height, width, jpeg.arith_code ? kMostPixels : std::ssize(bytes) * 8 * 64);
  jpeg.progress = &file.progress;
  const bool inks = jpeg.num_components == 4;
  std::vector<uint8_t> cmyk(inks ? static_cast<size_t>(4 * width) : 0);
  uint8_t* const pixels = image.mutable_data<uint8_t>();
  file.report.run(what, [&] {
    jpeg.out_color_space = inks ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&jpeg);
    for (int64_t y = 0; y < height; ++y) {
      uint8_t* const rgb = pixels + 3 * width * y;
      uint8_t* row = inks ? cmyk.data() : rgb;
      jpeg_read_scanlines(&jpeg, &row, 1);
      if (inks) rgb_of_cmyk(row, width, rgb);
    }
    jpeg_finish_decompress(&jpeg);
  });
  warning = file.report.warning();
  return image;
}

}  // namespace isonorm::data
