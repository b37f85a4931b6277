// A process that ends removes its unfinished files and folders.
#include "io/unfinished.h"

#include <sys/stat.h>

#include "io/replacement.h"
#include "tests/support/catch.h"
#include "tests/support/child.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
namespace fs = std::filesystem;

TEST_CASE("unfinished: files and folders that were not finished are removed, others stay") {
  const TempFolder f;
  {
    io::Unfinished file(f / "file"), folder(f / "folder"), whole(f / "whole"), none(f / "none");
    write_text(f / "file", "half");
    write_text(f / "whole", "whole");
    fs::create_directory(f / "folder");
    write_text(f / "folder/a", "half");
    whole.finish();
  }
  CHECK(f.files() == 1);
}

TEST_CASE("unfinished: a copy of the process does not remove what its parent writes") {
  const TempFolder f;
  std::optional<io::Replacement> file(f / "a");
  file->write("whole");
  CHECK(test::status_of_child([&] {
          io::Unfinished::remove_all();
          file.reset();
        }) == 0);
  file->commit();
  CHECK(read_bytes(f / "a").size() == 5);
}

TEST_CASE("unfinished: remove_all() removes what living objects have made, and nothing else") {
  const TempFolder f;
  const int status = test::status_of_child([&] {
    io::Replacement file(f / "file");
    file.write("half");
    const io::Unfinished folder(f / "folder");
    fs::create_directory(f / "folder");
    for (int i = 0; i < 300; ++i) write_text(f / ("folder/" + std::to_string(i) + std::string(100, 'x')), "half");
    io::Unfinished finished(f / "finished");
    write_text(f / "finished", "whole");
    finished.finish();
    std::vector<std::unique_ptr<io::Unfinished>> many;  // more than are remembered; harmless
    for (int i = 0; i < 100; ++i) many.push_back(std::make_unique<io::Unfinished>(f / std::to_string(i)));
    write_text(f / "99", "half");
    io::Unfinished::remove_all();
    _exit(0);
  });
  CHECK(status == 0);
  CHECK(f.files() == 2);
  CHECK(fs::exists(f / "finished"));
  CHECK(fs::exists(f / "99"));
}

TEST_CASE("replacements: what replacement_check() throws keeps the old file; it gets the path as it was given") {
  const TempFolder f;
  write_text(f / "a", "old");
  fs::create_symlink("a", f.path / "link");
  std::string asked;
  io::replacement_check() = [&](const std::string& path, const struct stat& made) {
    asked = path;
    if (made.st_size > 3) throw std::runtime_error("too long");
  };
  const auto replace = [&](const char* content) {
    io::Replacement r(f / "link");
    r.write(content);
    r.commit();
  };
  CHECK_THROWS_WITH(replace("four"), "too long");
  CHECK(read_bytes(f / "a").size() == 3);
  CHECK(asked == f / "link");
  replace("ok");
  CHECK(read_bytes(f / "a").size() == 2);
  io::replacement_check() = {};
  CHECK(f.files() == 2);
}
