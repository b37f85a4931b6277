// Pictures in folders, one folder for each class: DIR/train/cat/1.jpg, DIR/train/dog/2.png, DIR/test/cat/3.jpg; or DIR/cat/1.jpg, DIR/dog/2.png.
#pragma once

#include <string>
#include <vector>

#include "data/labelled_images.h"
#include "data/picture.h"

namespace isonorm::data {

struct ImageFolderOptions {
  int64_t side = 0;                       // of the images
  PictureFit fit = {};                    // how pictures become images of that side
  std::vector<std::string> classes = {};  // the names of the labels in order; empty: the folders' names
  double held_out = 0.1;                  // share of the pictures that are for tests if there is no folder DIR/train
  bool tests_only = false;                // reads no picture to train on
};

// Like torchvision's ImageFolder: a class is a folder, its label the place of the folder's name in ascending order. A picture is any file
// below it whose name ends with .png, .jpg or .jpeg. Names that begin with a dot are left out. Links are followed. A folder that is reached again below itself is left out there.
struct ImageFolder {
  LabelledImages train, test;  // images u8 [n, side, side, 3]
  std::vector<std::string> classes;

  static bool has_parts(const std::string& dir);  // true if there is a folder DIR/train
  // True if dir has_parts(), or a folder in it holds a picture. Gives up after kMostEntries entries of folders.
  static bool is_in(const std::string& dir);
  static constexpr int kMostEntries = 100'000;
  // With a folder DIR/train, reads its classes for training and for tests those of the first folder that is there of DIR/test, val, valid,
  // validation and dev; a warning names a second one, which is not read. Without one the classes are in DIR: of each
  // class the share `held_out` (rounded up, at random, the same pictures each time) is for tests, and at least one picture is not, unless the
  // share is 1. If decoders warn, says so in one warning (core/system/warning.h): how many pictures, which is the first, and why. Another
  // warning counts the pictures of other formats (.bmp, .gif, .pgm, .ppm, .tif, .tiff, .webp), which are left out.
  // Throws if a folder is missing, if a folder is none of the classes (of options.classes, or else those of training), if there is no picture
  // to test on (or, without options.classes, a class without a picture to train on), or if a picture cannot be read.
  static ImageFolder load(const std::string& dir, const ImageFolderOptions& options);
  // The folders that are classes: of DIR/train, or of DIR.
  static std::vector<std::string> class_names(const std::string& dir);
  // The pictures that it reads: those of DIR/train, class by class, then the others; without DIR/train all of them, class by class.
  static std::vector<std::string> files(const std::string& dir);
  // All files below DIR/train and the folders for tests, or below DIR if it has no such parts; pictures or not. A folder that cannot be
  // listed gives none.
  static std::vector<std::string> all_files(const std::string& dir);
};

}  // namespace isonorm::data
