// Pictures from files and folders. The files, what they decode to and what they are scaled to were written by Pillow 13.0 (Image.save,
// convert("RGB"), resize by BILINEAR).
#include "data/image_folder.h"

#include <cstdlib>

#include <zlib.h>

#include "data/image_sets.h"
#include "data/picture.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

const char* const kRgbaFile =
    "89504e470d0a1a0a0000000d49484452000000050000000308060000005b36c5f80000004a49444154789c013f00c0ff0044"
    "20823cfde6f1c26b30f90ec7dd01e4887534a2000f0b0d04c36ed80e71e0fd77b07670eb940bd533005f973daad8619b91ff"
    "c911f57cced458bbbf2ce0c0121ff296e2ba170000000049454e44ae426082";
const std::vector<uint8_t> kRgba = {68, 32,  130, 253, 230, 241, 107, 48,  249, 199, 221, 1,   136, 117, 52,
                                    15, 11,  13,  195, 110, 216, 113, 224, 253, 176, 118, 112, 148, 11,  213,
                                    95, 151, 61,  216, 97,  155, 255, 201, 17,  124, 206, 212, 187, 191, 44};  // 3 x 5
const char* const kGreyFile =
    "89504e470d0a1a0a0000000d49484452000000040000000208000000005ac322bf0000001249444154789c63349729fbc2f0"
    "8bff83180011e003ce97f0fad80000000049454e44ae426082";
const std::vector<uint8_t> kGrey = {55,  55,  55,  83, 83, 83, 201, 201, 201, 189, 189, 189,
                                    250, 250, 250, 15, 15, 15, 240, 240, 240, 22,  22,  22};  // 2 x 4
const char* const kPaletteFile =
    "89504e470d0a1a0a0000000d49484452000000030000000302030000002b465d2c0000000c504c5445acc6a641e5d9557190"
    "8902c4fca7ddc60000000e49444154789c63d060126092000001220055eb433b7e0000000049454e44ae426082";
const std::vector<uint8_t> kPalette = {172, 198, 166, 85,  113, 144, 85,  113, 144, 172, 198, 166, 137, 2,
                                       196, 85,  113, 144, 65,  229, 217, 65,  229, 217, 172, 198, 166};  // 3 x 3
const char* const kJpegFile =
    "ffd8ffe000104a46494600010100000100010000ffdb00430003020202020203020202030303030406040404040408060605"
    "0609080a0a090809090a0c0f0c0a0b0e0b09090d110d0e0f101011100a0c12131210130f101010ffdb004301030303040304"
    "08040408100b090b101010101010101010101010101010101010101010101010101010101010101010101010101010101010"
    "1010101010101010ffc00011080008001003012200021101031101ffc4001f00000105010101010101000000000000000001"
    "02030405060708090a0bffc400b5100002010303020403050504040000017d01020300041105122131410613516107227114"
    "328191a1082342b1c11552d1f02433627282090a161718191a25262728292a3435363738393a434445464748494a53545556"
    "5758595a636465666768696a737475767778797a838485868788898a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5"
    "b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9faffc4001f010003"
    "0101010101010101010000000000000102030405060708090a0bffc400b51100020102040403040705040400010277000102"
    "031104052131061241510761711322328108144291a1b1c109233352f0156272d10a162434e125f11718191a262728292a35"
    "363738393a434445464748494a535455565758595a636465666768696a737475767778797a82838485868788898a92939495"
    "969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae2e3e4e5e6e7e8e9ea"
    "f2f3f4f5f6f7f8f9faffda000c03010002110311003f00f09f0e7ecafe6edff8977fe395ea3e1cfd91fcddbff12cff00c728"
    "a2bf2fe17c655cdb97eb4ef73e07833c43cfe9f2f2d6fcff00ccffd9";
const std::vector<uint8_t> kJpeg = {
    19,  8,   0,   24,  9,   0,   33,  11,  0,   43,  10,  0,   53,  10,  0,   63,  10,  0,   75,  9,   0,   83,  9,
    0,   93,  9,   0,   102, 10,  0,   113, 9,   0,   123, 9,   0,   133, 8,   2,   143, 8,   4,   153, 10,  6,   158,
    10,  8,   27,  33,  0,   30,  34,  0,   40,  35,  3,   50,  35,  4,   61,  34,  7,   71,  34,  8,   82,  34,  12,
    91,  34,  14,  101, 34,  15,  110, 35,  16,  122, 34,  20,  132, 34,  21,  142, 34,  24,  152, 33,  25,  162, 35,
    29,  167, 35,  31,  24,  64,  2,   27,  65,  4,   37,  66,  8,   47,  68,  12,  58,  66,  17,  68,  65,  20,  79,
    66,  24,  89,  65,  27,  99,  66,  33,  107, 66,  36,  120, 66,  40,  131, 66,  44,  141, 65,  49,  151, 65,  52,
    159, 67,  56,  165, 68,  59,  22,  92,  3,   26,  95,  6,   36,  95,  11,  45,  96,  17,  57,  94,  24,  68,  94,
    29,  79,  94,  35,  87,  94,  42,  98,  96,  48,  107, 95,  53,  118, 96,  59,  129, 96,  65,  140, 94,  71,  150,
    94,  77,  159, 95,  83,  164, 98,  86,  25,  123, 4,   30,  125, 9,   40,  126, 15,  50,  127, 23,  61,  126, 32,
    72,  126, 40,  83,  125, 49,  92,  125, 56,  101, 125, 65,  110, 124, 71,  120, 126, 80,  131, 125, 89,  142, 125,
    97,  152, 125, 104, 162, 126, 112, 167, 127, 117, 24,  152, 5,   30,  153, 10,  39,  155, 20,  49,  155, 29,  60,
    155, 39,  72,  155, 49,  82,  156, 61,  91,  155, 69,  101, 155, 80,  109, 154, 89,  119, 154, 100, 131, 154, 110,
    142, 153, 121, 152, 154, 130, 161, 155, 139, 166, 156, 144, 22,  182, 10,  28,  184, 15,  37,  185, 26,  48,  186,
    38,  59,  185, 49,  70,  186, 61,  80,  186, 75,  89,  185, 85,  100, 186, 97,  108, 184, 109, 119, 185, 121, 129,
    186, 133, 140, 185, 146, 151, 186, 156, 160, 188, 166, 166, 189, 171, 31,  207, 21,  36,  208, 28,  46,  210, 38,
    56,  210, 50,  67,  209, 63,  78,  210, 75,  88,  210, 91,  98,  210, 102, 107, 211, 116, 117, 211, 127, 128, 211,
    141, 137, 211, 152, 151, 209, 168, 160, 211, 178, 170, 212, 190, 175, 214, 195};  // 8 x 16
const std::vector<uint8_t> kSquare3 = {81,  95,  89,  114, 126, 103, 94,  163, 138, 119, 113, 106, 119, 111,
                                       103, 106, 128, 153, 98,  132, 122, 126, 123, 130, 84,  90,  142};  // 3 x 3
const std::vector<uint8_t> kSquare10 = {
    92,  46,  130, 50,  41,  82,  14,  85,  33,  8,   221, 9,   96,  163, 92,  113, 115, 151, 61,  91,  171, 125,
    50,  108, 118, 78,  85,  81,  130, 86,  94,  93,  89,  85,  83,  117, 61,  98,  107, 12,  163, 15,  117, 122,
    50,  139, 122, 116, 73,  166, 194, 114, 149, 126, 91,  154, 114, 45,  170, 129, 125, 131, 58,  110, 106, 132,
    90,  91,  148, 68,  107, 21,  153, 90,  42,  157, 122, 114, 75,  199, 213, 101, 226, 129, 87,  215, 139, 61,
    189, 187, 207, 129, 65,  99,  71,  94,  64,  40,  92,  213, 86,  24,  204, 97,  117, 144, 104, 187, 54,  118,
    213, 88,  216, 97,  140, 207, 144, 190, 154, 250, 163, 77,  149, 137, 127, 131, 113, 137, 96,  104, 50,  39,
    109, 75,  88,  103, 104, 142, 90,  130, 185, 112, 189, 145, 148, 156, 156, 183, 91,  186, 109, 99,  140, 134,
    141, 132, 137, 148, 107, 90,  71,  52,  112, 91,  65,  109, 118, 88,  79,  142, 116, 85,  139, 168, 108, 96,
    161, 133, 45,  130, 62,  196, 45,  89,  112, 95,  128, 70,  117, 174, 140, 60,  211, 142, 61,  160, 145, 47,
    30,  146, 25,  14,  72,  161, 35,  34,  158, 67,  22,  98,  111, 231, 131, 87,  153, 145, 65,  80,  122, 62,
    50,  25,  133, 119, 127, 166, 158, 175, 150, 152, 156, 58,  66,  170, 99,  41,  150, 189, 48,  120, 91,  237,
    109, 99,  168, 148, 100, 87,  154, 83,  22,  83,  110, 112, 155, 140, 163, 175, 160, 161, 135, 71,  97,  139,
    81,  80,  150, 133, 87,  163, 45,  229, 46,  115, 167, 130, 169, 92,  191, 158, 26,  169, 117, 113, 159, 105,
    165, 119, 121, 169, 54,  67,  137, 97,  30,  125, 154, 10,  124, 205};  // 10 x 10
const std::vector<uint8_t> kBig = {
    0,   169, 234, 14,  117, 90,  92,  46,  130, 16,  36,  42,  8,   231, 7,   143, 127, 137, 56,  94,  176,
    148, 35,  85,  81,  130, 86,  139, 150, 232, 164, 254, 242, 58,  12,  159, 197, 175, 215, 96,  132, 55,
    129, 107, 221, 10,  115, 9,   203, 74,  18,  82,  228, 218, 112, 230, 114, 15,  202, 164, 218, 30,  152,
    64,  108, 24,  156, 36,  39,  158, 152, 81,  213, 129, 66,  4,   19,  111, 235, 87,  19,  193, 102, 177,
    50,  105, 221, 99,  252, 53,  199, 151, 255, 8,   166, 205, 144, 9,   80,  102, 167, 69,  173, 219, 109,
    136, 49,  194, 176, 248, 120, 33,  20,  43,  68,  86,  85,  109, 137, 170, 130, 188, 173, 174, 58,  149,
    120, 250, 69,  53,  164, 20,  208, 37,  194, 75,  64,  174, 58,  193, 39,  114, 41,  136, 186, 151, 58,
    234, 141, 55,  23,  151, 6,   7,   46,  211, 58,  20,  96,  122, 215, 82,  59,  230, 85,  123, 81,  52,
    222, 193, 150, 129, 244, 161, 51,  106, 162, 20,  13,  5,   151, 163, 230, 200, 160, 204, 32,  32,  162,
    233, 57,  128, 110, 240, 182, 132, 93,  106, 157, 101, 126, 184, 41,  143, 45,  229, 46,  173, 116, 199,
    157, 21,  167, 95,  162, 155, 125, 171, 51,  47,  125, 112, 10,  124, 205, 37,  137, 36,  38,  11,  5};  // 7 x 11

std::vector<uint8_t> bytes_of(const std::string& hex) {
  std::vector<uint8_t> all;
  for (size_t i = 0; i < hex.size(); i += 2)
    all.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return all;
}

int64_t distance(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  REQUIRE(a.size() == b.size());
  int64_t most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max<int64_t>(most, std::abs(a[i] - b[i]));
  return most;
}

void write_picture(const std::string& path, const char* hex) {
  fs::create_directories(fs::path(path).parent_path());
  write_bytes(path, bytes_of(hex));
}

}  // namespace

TEST_CASE("pictures have the pixels that Pillow reads") {
  const TempFolder f;
  const auto pixels = [&](const char* hex, const Dims& shape) {
    write_picture(f / "picture", hex);
    const Tensor image = data::read_picture(f / "picture");
    CHECK(image.shape() == shape);
    return image.to_vector<uint8_t>();
  };
  CHECK(pixels(kRgbaFile, {3, 5, 3}) == kRgba);
  CHECK(pixels(kGreyFile, {2, 4, 3}) == kGrey);
  CHECK(pixels(kPaletteFile, {3, 3, 3}) == kPalette);
  CHECK(distance(pixels(kJpegFile, {8, 16, 3}), kJpeg) <= 1);
}

TEST_CASE("the square in the middle is scaled as Pillow scales it") {
  const Tensor image = from_span(std::span<const uint8_t>(kBig), {7, 11, 3});
  CHECK(distance(data::square_of(image, 3).to_vector<uint8_t>(), kSquare3) <= 1);  // Pillow rounds between its passes
  CHECK(distance(data::square_of(image, 10).to_vector<uint8_t>(), kSquare10) <= 1);
  const Tensor same = data::square_of(image, 7);
  for (int64_t y = 0; y < 7; ++y)
    for (int64_t x = 0; x < 7; ++x)
      CHECK(same.data<uint8_t>()[(y * 7 + x) * 3] == kBig[static_cast<size_t>((y * 11 + x + 2) * 3)]);
  CHECK_THROWS_WITH(data::square_of(image, 0), Contains("to a side of 0"));
}

TEST_CASE("files that are no pictures, or damaged ones, are refused by name") {
  const TempFolder f;
  const auto refused = [&](std::vector<uint8_t> bytes, const char* why) {
    write_bytes(f / "x.png", bytes);
    CHECK_THROWS_WITH(data::read_picture(f / "x.png"), Contains("x.png") && Contains(why));
  };
  refused({}, "neither a PNG nor a JPEG");
  refused({'G', 'I', 'F', '8'}, "neither a PNG nor a JPEG");
  for (const char* hex : {kRgbaFile, kJpegFile}) {
    const std::vector<uint8_t> whole = bytes_of(hex);
    for (const size_t part : {size_t{9}, whole.size() / 2, whole.size() * 3 / 4})
      refused({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(part)}, "");
  }
  std::vector<uint8_t> huge = bytes_of(kRgbaFile);  // says that it has 20000 x 20000 pixels
  for (const size_t at : {16, 20}) huge[at + 2] = 20000 >> 8, huge[at + 3] = 20000 & 0xff;
  const uLong checksum = crc32(0, &huge[12], 17);
  for (size_t i = 0; i < 4; ++i) huge[29 + i] = static_cast<uint8_t>(checksum >> (24 - 8 * i));
  refused(huge, "a picture of 20000 x 20000 pixels");
  CHECK_THROWS_WITH(data::read_picture(f / "none.png"), Contains("none.png"));
}

TEST_CASE("folders of pictures are classes in the order of their names") {
  const TempFolder f;
  const std::string dir = f.path.string();
  CHECK_FALSE(data::are_pictures(dir));
  write_picture(dir + "/train/dog/b.JPG", kJpegFile);
  write_picture(dir + "/train/cat/z.png", kRgbaFile);
  write_picture(dir + "/train/cat/more/a.png", kGreyFile);
  write_bytes(dir + "/train/cat/notes.txt", {});
  write_picture(dir + "/val/dog/1.jpeg", kJpegFile);
  CHECK(data::are_pictures(dir));
  const data::ImageSets set = data::load_images(dir, 4);
  CHECK(set.classes == 2);
  CHECK(set.train.labels.to_vector<int64_t>() == std::vector<int64_t>{0, 0, 1});
  CHECK(set.test.labels.to_vector<int64_t>() == std::vector<int64_t>{1});
  CHECK(set.train.images.shape() == Dims{3, 4, 4, 3});
  std::vector<uint8_t> want;
  for (const char* name : {"/train/cat/more/a.png", "/train/cat/z.png", "/train/dog/b.JPG"}) {
    const auto one = data::square_of(data::read_picture(dir + name), 4).to_vector<uint8_t>();
    want.insert(want.end(), one.begin(), one.end());
  }
  CHECK(set.train.images.to_vector<uint8_t>() == want);
  CHECK(data::image_files(dir) == std::vector<std::string>{dir + "/train/cat/more/a.png", dir + "/train/cat/z.png",
                                                           dir + "/train/dog/b.JPG", dir + "/val/dog/1.jpeg"});
  write_picture(dir + "/val/bird/1.png", kGreyFile);
  CHECK_THROWS_WITH(data::load_images(dir, 4), Contains("bird is no class"));
  fs::remove_all(dir + "/val/bird"), fs::create_directory(dir + "/train/ant");
  CHECK_THROWS_WITH(data::load_images(dir, 4), Contains("/train/ant: has no .png"));
  fs::remove_all(dir + "/train/ant"), fs::remove_all(dir + "/val");
  CHECK_THROWS_WITH(data::load_images(dir, 4), Contains("/val: there is no such folder"));
}

TEST_CASE("a set that is named is looked for in $ISONORM_DATA") {
  const TempFolder f;
  const char* before = std::getenv("ISONORM_DATA");
  const std::string kept = before ? before : "";
  setenv("ISONORM_DATA", f.path.c_str(), 1);
  CHECK_THROWS_WITH(data::image_folder("cifar10"),
                    Contains("cifar10: there is no folder of that name") && Contains(f.path.string()));
  fs::create_directory(f / "cifar10");
  CHECK(data::image_folder("cifar10") == f / "cifar10");
  CHECK(data::image_folder("elsewhere") == "elsewhere");
  before ? setenv("ISONORM_DATA", kept.c_str(), 1) : unsetenv("ISONORM_DATA");
}
