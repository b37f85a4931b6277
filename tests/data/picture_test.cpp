// Pictures of every kind and square_of() against Pillow's pixels (tests/fixtures/pictures.py), and files that are
// refused.
#include "io/data/picture.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <zlib.h>

#include "io/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;

namespace {

using Raw = std::vector<uint8_t>;

const TensorMap& fixtures() {
  static const TensorMap all = load_safetensors("tests/fixtures/pictures.safetensors");
  return all;
}
Raw file_of(const std::string& name) { return fixtures().at(name).to_vector<uint8_t>(); }

Tensor read(const Raw& file, std::string* warning = nullptr) {
  const TempFolder f;
  write_bytes(f / "picture", file);
  return data::read_picture(f / "picture", warning);
}

// The largest difference between two pictures of the same shape.
int distance(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  int most = 0;
  for (int64_t i = 0; i < a.numel(); ++i) most = std::max(most, std::abs(a.data<uint8_t>()[i] - b.data<uint8_t>()[i]));
  return most;
}

// A copy without the last bytes.
Raw cut(Raw file, size_t bytes) {
  file.resize(file.size() - bytes);
  return file;
}

// Begin and end of the last scan of a JPEG.
std::pair<std::ptrdiff_t, std::ptrdiff_t> last_scan(const Raw& file) {
  const uint8_t scan[] = {0xff, 0xda};
  const auto at = std::find_end(file.begin(), file.end(), std::begin(scan), std::end(scan));
  return {at - file.begin(), std::ssize(file) - 2};
}

// `file` with `more` additional copies of its last scan.
Raw with_scans(const Raw& file, int more) {
  const auto [begin, end] = last_scan(file);
  Raw forged(file.begin(), file.begin() + end);
  for (int i = 0; i < more; ++i) forged.insert(forged.end(), file.begin() + begin, file.begin() + end);
  forged.insert(forged.end(), {0xff, 0xd9});
  return forged;
}

}  // namespace

TEST_CASE("pictures of every kind have Pillow's pixels, of 16-bit grey the high byte") {
  int cases = 0;
  for (const auto& [name, file] : fixtures()) {
    if (!name.ends_with(".png") && !name.ends_with(".jpg")) continue;
    CAPTURE(name);
    std::string warning = "left";
    const int most = distance(read(file.to_vector<uint8_t>(), &warning), fixtures().at(name + ".rgb"));
    // Another version of libjpeg-turbo may round differently by 1. With CMYK a colour is a product of two numbers, c k
    // / 255.
    const bool inks = name == "cmyk.jpg" || name == "ycck.jpg" || name == "no_adobe.jpg";
    CHECK(most <= (name.ends_with(".png") ? 0 : inks ? 2 : 1));
    CHECK(warning == (name == "extraneous.jpg" ? "Corrupt JPEG data: 6 extraneous bytes before marker 0xd9" : ""));
    ++cases;
  }
  CHECK(cases == 62);
}

TEST_CASE("the square in the middle is scaled as Pillow scales it") {
  const Tensor image = fixtures().at("image");
  for (const int64_t side : {3, 10})  // Pillow rounds between its passes
    CHECK(distance(data::square_of(image, side), fixtures().at(text("square", side))) <= 1);
  const Tensor same = data::square_of(image, 7);
  for (int64_t y = 0; y < 7; ++y)
    for (int64_t x = 0; x < 7; ++x)
      CHECK(same.data<uint8_t>()[(y * 7 + x) * 3] == image.data<uint8_t>()[(y * 11 + x + 2) * 3]);
  CHECK_THROWS_WITH(data::square_of(image, 0), Contains("to a side of 0"));
}

TEST_CASE("a picture that is cut off is refused") {
  for (const char* name :
       {"rgb8.png", "rgba16_interlaced.png", "palette2.png", "420.jpg", "progressive.jpg", "cmyk.jpg"}) {
    const Raw whole = file_of(name);
    for (const size_t lost :
         {size_t{1}, size_t{2}, size_t{13}, whole.size() / 4, whole.size() / 2, whole.size() - 20}) {
      CAPTURE(name, lost);
      CHECK_THROWS_WITH(read(cut(whole, lost)), EndsWith("cannot be decoded: the file is cut off"));
    }
  }
}

TEST_CASE("files that are no pictures are refused, whatever their names say") {
  CHECK_THROWS_WITH(read({}), EndsWith("neither a PNG nor a JPEG file"));
  CHECK_THROWS_WITH(read({'G', 'I', 'F', '8', '9', 'a', 1, 0, 1, 0}), EndsWith("neither a PNG nor a JPEG file"));
  CHECK_THROWS_WITH(read({0xff, 0xd8, 0xff}), EndsWith("the JPEG cannot be decoded: the file is cut off"));
  Raw damaged = file_of("rgb8.png");
  damaged[60] ^= 1;  // in IDAT
  CHECK_THROWS_WITH(read(damaged), Contains("the PNG cannot be decoded: "));
  // A PNG and a JPEG whose headers say that width and height are `side`.
  const auto png = [](int side) {
    Raw file = file_of("rgb8.png");
    for (const size_t at : {18, 22})
      file[at] = static_cast<uint8_t>(side >> 8), file[at + 1] = static_cast<uint8_t>(side);
    const uLong checksum = crc32(0, &file[12], 17);
    for (size_t i = 0; i < 4; ++i) file[29 + i] = static_cast<uint8_t>(checksum >> (24 - 8 * i));
    return file;
  };
  const auto jpeg = [](int side) {
    Raw file = file_of("420.jpg");
    const uint8_t frame[] = {0xff, 0xc0};
    const auto at = std::search(file.begin(), file.end(), std::begin(frame), std::end(frame));
    for (const int i : {5, 7}) at[i] = static_cast<uint8_t>(side >> 8), at[i + 1] = static_cast<uint8_t>(side);
    return file;
  };
  for (const auto& forged : {std::function<Raw(int)>(png), std::function<Raw(int)>(jpeg)}) {
    CHECK_THROWS_WITH(read(forged(20000)), EndsWith("a picture of 20000 x 20000 pixels, expected 1 to 67108864"));
    CHECK_THROWS_WITH(read(forged(8000)),
                      Contains("a picture of 8000 x 8000 pixels, a file of its size holds at most"));
  }
  CHECK_THROWS_WITH(data::read_picture("none.png"), Contains("none.png: cannot open"));
}

TEST_CASE("a JPEG of too many scans is refused, with the limit") {
  const Raw small = file_of("progressive.jpg");
  CHECK(read(with_scans(small, 400)).shape() == Dims{25, 39, 3});
  CHECK_THROWS_WITH(read(with_scans(small, 500)),
                    EndsWith("the JPEG cannot be decoded: it has over 500 scans, the limit for 39 x 25 pixels"));
}
