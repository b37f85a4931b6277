#include "training/records/run_logs.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "core/printed.h"
#include "training/options/option.h"
#include "training/records/training_log.h"

namespace isonorm::training {
namespace {

constexpr std::string_view kHeader =
    "step,lr,loss,gradient_norm,seconds,test_loss,test_accuracy,test_right,test_predictions\n";

// Calls `read` with what is there, where that is a file: the open of a pipe would wait.
void read_file(const std::string& path, const std::function<void(std::ifstream&)>& read) {
  if (!std::filesystem::is_regular_file(path)) return;
  const Scope scope(path);
  std::ifstream log(path, std::ios::binary);
  log.exceptions(std::ios::badbit);  // else a lack of memory while it reads is no error but the end of the file
  try {
    read(log);
  } catch (const std::ios_base::failure&) {
    check_io(false, "cannot be read");
  }
  check_io(log.eof(), "cannot be read");  // the end was not where reading stopped
}

// Takes a row of a CSV log in; false where it is none.
bool take_row(const std::string& line, TrainingCourse& course) {
  std::vector<std::string> cells;
  std::istringstream in(line + ",");
  for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
  TrainingStep s;
  if (cells.size() != 9 || !read_number(cells[0], s.step)) return false;
  if (cells[1].empty()) {
    Evaluation e{.step = s.step};
    course.evaluations.push_back(e);
    Evaluation& now = course.evaluations.back();
    return read_number(cells[5], now.loss) && read_number(cells[7], now.right) &&
           read_number(cells[8], now.predictions) && now.predictions > 0;
  }
  if (double norm = 0; read_number(cells[3], norm)) s.gradient_norm = norm;
  const bool whole = read_number(cells[1], s.lr) && read_number(cells[2], s.loss) && read_number(cells[4], s.seconds);
  course.steps.push_back(s);
  return whole;
}

}  // namespace

JsonLog::JsonLog(const std::string& path, const Manifest& manifest, Input input, int done)
    : input_(input), file_(path, kLogBegin) {
  int64_t kept = 0;
  read_file(path, [&](std::ifstream& log) {
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

CsvLog::CsvLog(const std::string& path, int done) : file_(path, kHeader) {
  size_t kept = 0;
  read_file(path, [&](std::ifstream& log) {
    std::string line;
    while (std::getline(log, line)) {
      if (log.eof()) break;  // it was cut off
      TrainingCourse row;
      const bool header = kept == 0;
      if (!header) {
        check(take_row(line, row), "this is no log of a training: '", line.substr(0, 80), "'");
        check(done > 0, "has rows of a training; a CSV log is of one: choose another file");
        if ((row.steps.empty() ? row.evaluations[0].step : row.steps[0].step) > done) break;
      }
      kept += line.size() + 1;
      earlier_.steps.insert(earlier_.steps.end(), row.steps.begin(), row.steps.end());
      earlier_.evaluations.insert(earlier_.evaluations.end(), row.evaluations.begin(), row.evaluations.end());
    }
    log.setstate(std::ios::eofbit);
  });
  file_.keep(static_cast<int64_t>(kept));
  if (kept == 0) file_.write(std::string(kHeader));
}

void CsvLog::step(const TrainingStep& s) {
  file_.write(text(s.step, ',', shortest(s.lr), ',', shortest(s.loss), ',',
                   s.gradient_norm ? shortest(*s.gradient_norm) : "", ',', printed("%.3f", s.seconds), ",,,,\n"));
}

void CsvLog::evaluation(const Evaluation& e) {
  if (!has(e))
    file_.write(
        text(e.step, ",,,,,", shortest(e.loss), ',', shortest(e.accuracy()), ',', e.right, ',', e.predictions, '\n'));
}

void EventLog::step(const TrainingStep& s) {
  file_.scalar("train/loss", s.step, s.loss);
  file_.scalar("train/lr", s.step, s.lr);
  if (s.gradient_norm) file_.scalar("train/gradient_norm", s.step, *s.gradient_norm);
}

void EventLog::evaluation(const Evaluation& e) {
  file_.scalar("test/loss", e.step, e.loss);
  file_.scalar("test/accuracy", e.step, e.accuracy());
}

}  // namespace isonorm::training
