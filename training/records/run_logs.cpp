#include "training/records/run_logs.h"

#include <algorithm>

#include "core/printed.h"
#include "training/records/read_log.h"

namespace isonorm::training {
namespace {

const CsvTable::Cells kColumns = {"lr",        "loss",          "gradient_norm", "seconds",
                                  "test_loss", "test_accuracy", "test_right",    "test_predictions"};

constexpr int kMostSteps = 10'000'000;  // limit for a log that is plotted: a curve has a number for each step

template <class Entry> int last_step(const std::vector<Entry>& entries) {
  return entries.empty() ? 0 : entries.back().step;
}

// Adds a row of a CSV log to the course. Returns false if the row is invalid or its step is not larger than the
// previous one.
bool take_row(const CsvTable::Cells& cells, TrainingCourse& course) {
  TrainingStep s;
  if (!read_number(cells[0], s.step)) return false;
  if (cells[1].empty()) {
    if (s.step < 0 || (!course.evaluations.empty() && s.step <= last_step(course.evaluations))) return false;
    Evaluation& now = course.evaluations.emplace_back(Evaluation{.step = s.step});
    return read_number(cells[5], now.loss) && read_number(cells[7], now.right) &&
           read_number(cells[8], now.predictions) && now.predictions >= 0;
  }
  if (double norm = 0; read_number(cells[3], norm)) s.gradient_norm = norm;
  const bool whole = s.step > last_step(course.steps) && read_number(cells[1], s.lr) && read_number(cells[2], s.loss) &&
                     read_number(cells[4], s.seconds);
  course.steps.push_back(s);
  return whole;
}

// True if a log begins with CsvLog's header; reads its first bytes.
bool is_csv(std::istream& log) {
  std::string begin(CsvTable::header(kColumns).size(), '\0');
  log.read(begin.data(), std::ssize(begin));
  return begin == CsvTable::header(kColumns);
}

}  // namespace

JsonLog::JsonLog(const std::string& path, const Manifest& manifest, Input input, int done)
    : input_(input), file_(path, kLogBegin) {
  int64_t kept = 0;
  read_log(path, [&](std::istream& log) {
    earlier_ = logged_course(log, manifest, done);
    log.clear(), log.seekg(0);
    kept = logged_bytes(log, manifest, done);
  });
  file_.keep(kept);
  file_.write(log_manifest(manifest));
}

void JsonLog::step(const TrainingStep& s) { file_.write(log_step(s)); }

void JsonLog::evaluation(const Evaluation& e) {
  if (!has(e)) file_.write(log_evaluation(e, input_));
}

void JsonLog::end(const TrainingResult& result) { file_.write(log_end(result)); }

LoggedTraining read_logged(std::istream& log) {
  LoggedTraining found;
  const bool csv = is_csv(log);
  log.clear(), log.seekg(0);
  check_io(!log.fail(), "it cannot be read twice, expected a file");
  if (csv)
    CsvTable::read(log, kColumns, [&](int64_t step, const CsvTable::Cells& cells) {
      check(take_row(cells, found.course), "this is not a training log: its row for step ", step, " cannot be read");
      return true;
    });
  else
    found = last_logged(log);
  const int last = std::max(last_step(found.course.steps), last_step(found.course.evaluations));
  check(last <= kMostSteps, "it has a step ", last, ", expected at most ", kMostSteps);
  return found;
}

CsvLog::CsvLog(const std::string& path, int done)
    : table_(path, kColumns, done, [this](const CsvTable::Cells& cells) { return take_row(cells, earlier_); }) {}

void CsvLog::step(const TrainingStep& s) {
  table_.text_row(s.step, {shortest(s.lr), shortest(s.loss), s.gradient_norm ? shortest(*s.gradient_norm) : "",
                           printed("%.3f", s.seconds), "", "", "", ""});
}

void CsvLog::evaluation(const Evaluation& e) {
  if (!has(e))
    table_.text_row(e.step, {"", "", "", "", shortest(e.loss), e.predictions > 0 ? shortest(e.accuracy()) : "",
                             text(e.right), text(e.predictions)});
}

void EventLog::step(const TrainingStep& s) {
  file_.scalar("train/loss", s.step, s.loss);
  file_.scalar("train/lr", s.step, s.lr);
  if (s.gradient_norm) file_.scalar("train/gradient_norm", s.step, *s.gradient_norm);
}

void EventLog::evaluation(const Evaluation& e) {
  file_.scalar("test/loss", e.step, e.loss);
  if (e.predictions > 0) file_.scalar("test/accuracy", e.step, e.accuracy());
}

}  // namespace isonorm::training
