// Pictures in folders, one a class: DIR/train/cat/1.jpg, DIR/train/dog/2.png, DIR/test/cat/3.jpg.
#pragma once

#include <string>
#include <vector>

#include "data/labelled_images.h"

namespace isonorm::data {

// As of torchvision's ImageFolder: classes are the folders' names in order, and a picture is any file below one whose name ends
// with .png, .jpg or .jpeg. Links are followed. A folder that is reached again below itself is left out there.
struct ImageFolder {
  LabelledImages train, test;  // images u8 [n, side, side, 3]
  std::vector<std::string> classes;

  static bool is_in(const std::string& dir);  // whether there is a folder DIR/train
  // Reads DIR/train, and DIR/test or DIR/val: of each picture the square in the middle, scaled to `side` (data/picture.h). If decoders
  // warn, says so in one warning (core/system/warning.h): how many pictures, which is the first, and why. Another warning counts the pictures
  // of other formats (.bmp, .gif, .pgm, .ppm, .tif, .tiff, .webp), which are left out. Throws if there is no such
  // folder, if a class has no picture to train on, if a folder of test has no class of its name, or if a picture cannot be read.
  static ImageFolder load(const std::string& dir, int64_t side);
  // The pictures that it reads: those to train on, class by class, then the others.
  static std::vector<std::string> files(const std::string& dir);
  // All files below DIR/train, DIR/test and DIR/val, pictures or not. A folder that cannot be listed gives none.
  static std::vector<std::string> all_files(const std::string& dir);
};

}  // namespace isonorm::data
