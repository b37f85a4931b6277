#include "io/data/decoder.h"

#include <png.h>

#include <algorithm>

#include "io/data/picture.h"

namespace isonorm::data {
namespace {

// libpng's structures, and the bytes that it has not read.
struct PngFile {
  explicit PngFile(std::span<const uint8_t> file) : left(file) {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &report, on_error, on_warning);
    info = png ? png_create_info_struct(png) : nullptr;
  }
  ~PngFile() { png_destroy_read_struct(&png, &info, nullptr); }
  PngFile(const PngFile&) = delete;
  PngFile& operator=(const PngFile&) = delete;

  static void on_error(png_structp png, png_const_charp why) {
    static_cast<DecoderReport*>(png_get_error_ptr(png))->fail(why);
  }
  static void on_warning(png_structp png, png_const_charp why) {
    static_cast<DecoderReport*>(png_get_error_ptr(png))->warn(why);
  }
  static void read(png_structp png, png_bytep to, size_t n) {
    std::span<const uint8_t>& left = *static_cast<std::span<const uint8_t>*>(png_get_io_ptr(png));
    if (n > left.size()) png_error(png, "the file is cut off");
    std::copy_n(left.begin(), n, to);
    left = left.subspan(n);
  }

  DecoderReport report;
  std::span<const uint8_t> left;
  png_structp png = nullptr;
  png_infop info = nullptr;
};

}  // namespace

Tensor read_png(std::span<const uint8_t> bytes, std::string& warning) {
  constexpr const char* what = "the PNG cannot be decoded";
  PngFile file(bytes);
  check(file.info != nullptr, what, ": libpng cannot start");
  png_structp png = file.png;
  file.report.run(what, [&] {
    png_set_read_fn(png, &file.left, PngFile::read);
    png_set_user_limits(png, kMostPixels, kMostPixels);
    // All chunks but IHDR, PLTE, IDAT and IEND are skipped unread.
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, reinterpret_cast<png_const_bytep>("tRNS"), 1);
    png_set_crc_action(png, PNG_CRC_DEFAULT, PNG_CRC_QUIET_USE);
    png_read_info(png, file.info);
  });
  // Deflate packs at most 1032 bytes into one.
  const int64_t bits = int64_t{png_get_bit_depth(png, file.info)} * png_get_channels(png, file.info);
  const Tensor image = picture_of(png_get_image_height(png, file.info), png_get_image_width(png, file.info),
                                  std::ssize(bytes) * 1032 * 8 / bits);
  uint8_t* const pixels = image.mutable_data<uint8_t>();
  const int64_t height = image.size(0), row = 3 * image.size(1);
  file.report.run(what, [&] {
    png_set_expand(png);       // palettes to colours, 1, 2 and 4 bits to 8
    png_set_strip_16(png);     // the high byte
    png_set_strip_alpha(png);  // dropped, not composited
    png_set_gray_to_rgb(png);
    const int passes = png_set_interlace_handling(png);
    png_read_update_info(png, file.info);
    for (int pass = 0; pass < passes; ++pass)
      for (int64_t y = 0; y < height; ++y) png_read_row(png, pixels + y * row, nullptr);
    png_read_end(png, nullptr);
  });
  warning = file.report.warning();
  return image;
}

}  // namespace isonorm::data
