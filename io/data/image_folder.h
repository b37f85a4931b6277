// Pictures in folders, one folder for each class: DIR/train/cat/1.jpg, DIR/train/dog/2.png, DIR/test/cat/3.jpg; or DIR/cat/1.jpg, DIR/dog/2.png.
#pragma once

#include <string>
#include <vector>

#include "io/data/picture.h"
#include "io/data/published_sets.h"

namespace isonorm::data {

struct ImageFolderOptions {
  int64_t side = 0;                       // of the images
  PictureFit fit = {};                    // how pictures become images of that side
  std::vector<std::string> classes = {};  // the names of the labels in order; empty: the folders' names
  double held_out = 0.1;                  // share of the pictures that are for tests if no folder is for them
  bool tests_only = false;                // reads no picture to train on
};

// Like torchvision's ImageFolder: a class is a folder, its label the place of the folder's name in ascending order. A picture is any file
// below it whose name ends with .png, .jpg or .jpeg. Names that begin with a dot are left out. Links are followed. A folder that is reached again below itself is left out there.
struct ImageFolder {
  LabelledImages train, test;  // images u8 [n, side, side, 3]
  std::vector<std::string> classes;

  // True if a folder in `dir` holds a picture. Gives up after kMostEntries entries of folders.
  static bool is_in(const std::string& dir);
  // Why that is false, for a message: "75 pictures are in no folder of a class".
  static std::string why_not(const std::string& dir);
  static constexpr int kMostEntries = 100'000;
  // Classes are the folders in DIR/train (training, training_set), or in DIR if there is no such folder. Tests are on the classes in the first
  // folder that is there of DIR/test, testing, test_set, val, valid, validation and dev; a warning names a second one, which is not
  // read. The case of these names does not matter; a folder with pictures directly in it is a class of that name. If there are only folders
  // for tests, nothing is to train on. Without them the share `held_out` of each class (rounded up, at random, the same pictures each
  // time) is for tests, and at least one picture is not, unless the share is 1.
  // If decoders warn, says so in one warning (core/system/warning.h): how many pictures, which is the first, and why. Another warning counts
  // the pictures of other formats (.bmp, .gif, .pgm, .ppm, .tif, .tiff, .webp), which are left out.
  // Throws if the folders are parts by other names instead of classes (they hold folders of the same names), if a folder is none of the classes (of
  // options.classes, or else those of training), if there is no picture to test on (or, without options.classes, a class without a picture
  // to train on), or if a picture cannot be read.
  static ImageFolder load(const std::string& dir, const ImageFolderOptions& options);
  static bool has_own_tests(const std::string& dir);  // true if a folder is for tests
  // A line "cat 12" for each class of a folder that is split.
  static std::string class_counts(const std::string& dir);
  // The folders that are classes: of DIR/train, or of DIR.
  static std::vector<std::string> class_names(const std::string& dir);
  // The pictures that it reads: those of DIR/train, class by class, then the others; without DIR/train all of them, class by class.
  static std::vector<std::string> files(const std::string& dir);
  // All files below the folders of classes, pictures or not. A folder that cannot be listed gives none.
  static std::vector<std::string> all_files(const std::string& dir);
};

// True if the name of a file ends as the name of a picture does, whether its format is read or not.
bool is_picture(const std::string& path);

}  // namespace isonorm::data
