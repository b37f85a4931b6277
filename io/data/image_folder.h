// Pictures in folders, one folder for each class: DIR/train/cat/1.jpg, DIR/train/dog/2.png, DIR/test/cat/3.jpg; or
// DIR/cat/1.jpg, DIR/dog/2.png.
#pragma once

#include <string>
#include <vector>

#include "io/data/picture.h"
#include "io/data/published_sets.h"

namespace isonorm::data {

struct ImageFolderOptions {
  int64_t side = 0;                       // height and width of the images
  PictureFit fit = {};                    // how pictures are resized and cropped to that size
  std::vector<std::string> classes = {};  // class names in the order of the labels; empty: the folders' names
  double held_out = 0.1;                  // share of the pictures used for tests if there is no test folder
  bool tests_only = false;                // does not read training pictures
};

// Like torchvision's ImageFolder: each folder is a class, and its label is the position of its name in ascending order.
// A picture is any file below the folder whose name ends with .png, .jpg or .jpeg. Names that begin with a dot are
// ignored. Links are followed, except from a folder back to one that it is in.
struct ImageFolder {
  LabelledImages train, test;  // images u8 [n, side, side, 3]
  std::vector<std::string> classes;

  // True if a folder in `dir` holds a picture. Gives up after kMostEntries directory entries.
  static bool is_in(const std::string& dir);
  // The reason why is_in() is false, for a message: "75 pictures are in no folder of a class".
  static std::string why_not(const std::string& dir);
  static constexpr int kMostEntries = 100'000;
  // Reads a set. Classes are the folders in DIR/train (or training, training_set), or in DIR if there is no such
  // folder.
  //
  // Test pictures are in the first of DIR/test, testing, test_set, val, valid, validation and dev that exists; a
  // warning names a second one, which is not read. The case of these names does not matter. A folder that itself
  // contains pictures is a class with its name. If there are only test folders, the training set is empty.
  //
  // Without a test folder, the share `held_out` of each class is used for tests: rounded up, chosen at random, but the
  // same pictures each time. At least one picture of each class stays for training, unless the share is 1.
  //
  // Warns (core/system/warning.h) if decoders warned: how many pictures, the first one, and its reason. Warns about
  // pictures of other formats (.bmp, .gif, .pgm, .ppm, .tif, .tiff, .webp), which are ignored.
  //
  // Throws if the folders look like splits with names that are not known here and not like classes (they all contain
  // folders of the same names), if a folder is not one of the classes (options.classes, or else the training classes),
  // if there is no test picture (or, without options.classes, a class without a training picture), or if a picture
  // cannot be read.
  static ImageFolder load(const std::string& dir, const ImageFolderOptions& options);
  static bool has_own_tests(const std::string& dir);  // true if there is a test folder
  // A line "cat 12" for each class, if the pictures are split into training and test.
  static std::string class_counts(const std::string& dir);
  // The class folders, in DIR/train or in DIR.
  static std::vector<std::string> class_names(const std::string& dir);
  // The pictures that load() reads. With DIR/train: first the training pictures by class, then the test pictures.
  // Without: all pictures by class.
  static std::vector<std::string> files(const std::string& dir);
  // All files below the class folders, pictures or not. A folder that cannot be listed is left out.
  static std::vector<std::string> all_files(const std::string& dir);
};

// True if the file's extension is a picture format, even if this library does not read it.
bool is_picture(const std::string& path);

}  // namespace isonorm::data
