// Logs of trainings: event files of TensorBoard, read back by a naive reader, and what a CSV log keeps.
#include "training/records/run_logs.h"

#include <cstring>
#include <map>

#include "autograd/ops/create.h"
#include "core/error.h"
#include "io/data/decoder.h"
#include "tests/support/catch.h"
#include "tests/support/read_text.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
using namespace isonorm::training;
using Catch::Matchers::Contains;
using isonorm::test::read_text;

namespace {

// Bit by bit, with the polynomial written forwards (RFC 3720, appendix B.4).
uint32_t plain_crc32c(const std::string& bytes) {
  const auto mirrored = [](uint32_t x, int bits) {
    uint32_t y = 0;
    for (int i = 0; i < bits; ++i) y = y << 1 | (x >> i & 1);
    return y;
  };
  uint32_t c = 0xffffffff;
  for (const char b : bytes) {
    c ^= mirrored(static_cast<uint8_t>(b), 8) << 24;
    for (int bit = 0; bit < 8; ++bit) c = c << 1 ^ (c >> 31 ? 0x1edc6f41 : 0);
  }
  return mirrored(c ^ 0xffffffff, 32);
}

template <class T> T taken(std::string& bytes) {
  T value;
  REQUIRE(bytes.size() >= sizeof value);
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.erase(0, sizeof value);
  return value;
}

uint64_t taken_varint(std::string& bytes) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto b = taken<uint8_t>(bytes);
    value |= static_cast<uint64_t>(b & 127) << shift;
    if (b < 128) return value;
  }
}

std::vector<double> doubles(std::string bytes) {
  std::vector<double> values;
  while (!bytes.empty()) values.push_back(taken<double>(bytes));
  return values;
}

// The fields of a message, as the bytes of their values.
std::map<uint64_t, std::string> fields_of(std::string bytes) {
  std::map<uint64_t, std::string> fields;
  while (!bytes.empty()) {
    const uint64_t key = taken_varint(bytes), wire = key & 7;
    if (wire == 0) {
      fields[key >> 3] = std::to_string(taken_varint(bytes));
      continue;
    }
    const size_t length = wire == 1 ? 8 : wire == 5 ? 4 : taken_varint(bytes);
    fields[key >> 3] = bytes.substr(0, length);
    bytes.erase(0, length);
  }
  return fields;
}

struct LoggedScalar {
  std::string tag;
  int step;
  float value;
  bool operator==(const LoggedScalar&) const = default;
};

struct Summary {
  std::string tag;
  int step;
  std::map<uint64_t, std::string> histogram, image;  // fields of the message
};

struct Events {
  std::string version;
  int start = -1;
  std::vector<LoggedScalar> scalars;
  std::vector<Summary> others;
};

Events read_events(const std::string& path) {
  Events events;
  std::string all = read_text(path);
  for (bool first = true; !all.empty(); first = false) {
    const std::string length = all.substr(0, 8);
    const auto n = taken<uint64_t>(all);
    for (const std::string& part : {length, all.substr(4, n)}) {
      const uint32_t c = plain_crc32c(part);
      const std::string rest = part == length ? all.substr(0, 4) : all.substr(4 + n, 4);
      uint32_t stored;
      std::memcpy(&stored, rest.data(), 4);
      CHECK(stored == ((c >> 15 | c << 17) + 0xa282ead8));
    }
    auto event = fields_of(all.substr(4, n));
    all.erase(0, n + 8);
    CHECK(taken<double>(event[1]) > 1.7e9);
    if (first) events.version = event.at(3);
    if (event.contains(7)) {
      CHECK(fields_of(event[7])[1] == "1");
      events.start = std::stoi(event.at(2));
    }
    if (!event.contains(5)) continue;
    auto value = fields_of(fields_of(event[5]).at(1));
    const int step = std::stoi(event.at(2));
    if (value.contains(2))
      events.scalars.push_back({value.at(1), step, taken<float>(value.at(2))});
    else
      events.others.push_back({value.at(1), step, fields_of(value[5]), fields_of(value[4])});
  }
  return events;
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

}  // namespace

TEST_CASE("crc32c is Castagnoli's") {
  CHECK(io::crc32c("123456789") == 0xe3069283);  // RFC 3720's check value
  CHECK(io::crc32c(std::string(32, '\0')) == 0x8a9136aa);
  for (const std::string s : {"", "a", "isonorm"}) CHECK(io::crc32c(s) == plain_crc32c(s));
}

TEST_CASE("event files: the logs of a training, and the step from which earlier files are void") {
  const TempFolder f;
  {
    EventLog log(f.path);
    log.step({.step = 1, .lr = 0.5, .loss = 2.25, .gradient_norm = 3});
    log.step({.step = 300, .lr = 0.25, .loss = -1});
    log.evaluation({.step = 300, .loss = 1.5, .right = 3, .predictions = 4});
  }
  EventLog(f.path, 200).step({.step = 201, .lr = 1, .loss = 2});
  const std::vector<std::string> files = files_in(f.path);
  REQUIRE(files.size() == 2);
  const Events a = read_events(files[0]), b = read_events(files[1]);
  CHECK(a.version == "brain.Event:2");
  CHECK(a.start == 1);
  CHECK(a.scalars == std::vector<LoggedScalar>{{"train/loss", 1, 2.25f},
                                               {"train/lr", 1, 0.5f},
                                               {"train/gradient_norm", 1, 3.f},
                                               {"train/loss", 300, -1.f},
                                               {"train/lr", 300, 0.25f},
                                               {"test/loss", 300, 1.5f},
                                               {"test/accuracy", 300, 0.75f}});
  CHECK(b.start == 201);
  CHECK(b.scalars.size() == 2);
  EventLog(f / "new").step({.step = 1});  // which it makes
  CHECK(std::filesystem::is_directory(f / "new"));
  EventLog(f / "new/and/deeper");  // made with its parents
  CHECK(std::filesystem::is_directory(f / "new/and/deeper"));
  write_text(f / "file", "");
  CHECK_THROWS_AS(EventLog(f / "file/deeper"), Error);
}

TEST_CASE("a CSV log keeps the steps before a resumption, and belongs to one training") {
  const TempFolder f;
  const std::string path = f / "l.csv";
  {
    CsvLog log(path);
    for (int t = 1; t <= 5; ++t)
      log.step({.step = t, .lr = 0.1 * t, .loss = 1.0 / t, .gradient_norm = {}, .seconds = 0});
    log.evaluation({.step = 5, .loss = 0.5, .right = 1, .predictions = 2});
  }
  const std::string whole = read_text(path);
  CHECK_THROWS_WITH(CsvLog(path), Contains("has rows of a training"));
  CHECK(read_text(path) == whole);
  {
    CsvLog log(path, 5);
    REQUIRE(log.earlier().steps.size() == 5);
    CHECK(log.earlier().steps[2].loss == 1.0 / 3);
    CHECK(log.earlier().evaluations.at(0).right == 1);
    log.evaluation({.step = 5, .loss = 0.5, .right = 1, .predictions = 2});  // it is there already
  }
  CHECK(read_text(path) == whole);
  CHECK(CsvLog(path, 3).earlier().steps.size() == 3);
  CHECK(read_text(path) == whole.substr(0, whole.find("4,0.4")));
}

TEST_CASE("event files: histograms count the finite entries in thirty equal intervals") {
  const TempFolder f;
  {
    EventLog log(f.path);
    const Tensor x = tensor({0.0, 0.5, 0.99, 1.0, 29.5, 30.0, double{INFINITY}, double{NAN}});
    log.file().histogram("x", 7, x);
    log.file().histogram("same", 8, tensor({2.f, 2.f}));
    log.file().histogram("none", 9, tensor({NAN}));
  }
  const Events events = read_events(files_in(f.path)[0]);
  REQUIRE(events.others.size() == 2);
  auto x = events.others[0].histogram;
  CHECK(events.others[0].tag == "x");
  CHECK(events.others[0].step == 7);
  CHECK(taken<double>(x[1]) == 0);
  CHECK(taken<double>(x[2]) == 30);
  CHECK(taken<double>(x[3]) == 6);
  CHECK(taken<double>(x[4]) == Approx(0.5 + 0.99 + 1 + 29.5 + 30));
  CHECK(taken<double>(x[5]) == Approx(0.25 + 0.99 * 0.99 + 1 + 29.5 * 29.5 + 900));
  std::vector<double> ends(30), counts(30);
  for (size_t i = 0; i < 30; ++i) ends[i] = static_cast<double>(i + 1);
  counts[0] = 3, counts[1] = 1, counts[29] = 2;
  CHECK(doubles(x[6]) == ends);
  CHECK(doubles(x[7]) == counts);
  auto same = events.others[1].histogram;
  CHECK(doubles(same[6]) == std::vector<double>{2});
  CHECK(doubles(same[7]) == std::vector<double>{2});
}

TEST_CASE("event files: pictures are PNGs of the same pixels") {
  const TempFolder f;
  const Tensor grey = tensor({{{0.0}, {1.0}, {0.5}}, {{-3.0}, {7.0}, {double{NAN}}}});
  const Tensor red = from_vector<uint8_t>({255, 0, 0, 1, 2, 3}, {1, 2, 3});
  {
    EventLog log(f.path);
    log.file().image("grey", 1, grey);
    log.file().image("red", 2, red);
    CHECK_THROWS_WITH(log.file().image("flat", 3, zeros({2, 2})),
                      "image: the shape is [2, 2], expected [height, width, 1 or 3]");
    CHECK_THROWS_WITH(log.file().image("ids", 3, zeros({2, 2, 1}, {DType::i64})), Contains("the dtype is i64"));
  }
  const Events events = read_events(files_in(f.path)[0]);
  REQUIRE(events.others.size() == 2);
  auto first = events.others[0].image, second = events.others[1].image;
  CHECK((first[1] == "2" && first[2] == "3" && first[3] == "1"));
  const auto pixels = [](const std::string& png) {
    std::string warning;
    return data::read_png({reinterpret_cast<const uint8_t*>(png.data()), png.size()}, warning);
  };
  // As RGB: every channel is the grey.
  CHECK(pixels(first[4]).to_vector<uint8_t>() ==
        std::vector<uint8_t>{0, 0, 0, 255, 255, 255, 128, 128, 128, 0, 0, 0, 255, 255, 255, 0, 0, 0});
  CHECK(pixels(second[4]).to_vector<uint8_t>() == red.to_vector<uint8_t>());
}

TEST_CASE("a table of the user's columns continues after the steps that are done") {
  const TempFolder f;
  const std::string path = f / "t.csv";
  {
    CsvTable table(path, {"loss", "norm"});
    table.row(1, {0.5, 1.0 / 3});
    table.row(2, {0.25, NAN});
    table.row(3, {0.125, 2});
    CHECK_THROWS_WITH(table.row(4, {1}), "csv: a row of 1 cells, expected 2");
  }
  CHECK(read_text(path) == "step,loss,norm\n1,0.5,0.3333333333333333\n2,0.25,nan\n3,0.125,2\n");
  CHECK_THROWS_WITH(CsvTable(path, {"loss", "norm"}), Contains("has rows of a training"));
  CHECK_THROWS_WITH(CsvTable(path, {"loss"}, 2), Contains("this is not a log of isonorm"));
  CHECK_THROWS_WITH(CsvTable(f / "u.csv", {"a,b"}), Contains("the name of a column is 'a,b'"));
  CsvTable(path, {"loss", "norm"}, 2).row(3, {1, 1});
  CHECK(read_text(path) == "step,loss,norm\n1,0.5,0.3333333333333333\n2,0.25,nan\n3,1,1\n");
}

TEST_CASE("logs: the evaluation of a regression has no accuracy, and the training continues") {
  const TempFolder f;
  const std::string path = f / "l.csv";
  {
    CsvLog log(path);
    log.step({.step = 1, .lr = 0.5, .loss = 1});
    log.evaluation({.step = 1, .loss = 0.25});
  }
  CHECK_THAT(read_text(path), Contains("\n1,,,,,0.25,,0,0\n"));
  CHECK(CsvLog(path, 1).earlier().evaluations.at(0).loss == 0.25);
  { EventLog(f / "events").evaluation({.step = 1, .loss = 0.25}); }
  CHECK(read_events(files_in(f / "events")[0]).scalars == std::vector<LoggedScalar>{{"test/loss", 1, 0.25f}});
}
