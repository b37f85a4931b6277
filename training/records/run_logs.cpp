#include "training/records/run_logs.h"

#include "core/printed.h"
#include "training/records/read_log.h"
#include "training/records/training_log.h"

namespace isonorm::training {
namespace {

const CsvTable::Cells kColumns = {"lr",        "loss",          "gradient_norm", "seconds",
                                  "test_loss", "test_accuracy", "test_right",    "test_predictions"};

// Takes a row of a CSV log in; false if it is none.
bool take_row(const CsvTable::Cells& cells, TrainingCourse& course) {
  TrainingStep s;
  if (!read_number(cells[0], s.step)) return false;
  if (cells[1].empty()) {
    Evaluation& now = course.evaluations.emplace_back(Evaluation{.step = s.step});
    return read_number(cells[5], now.loss) && read_number(cells[7], now.right) &&
           read_number(cells[8], now.predictions) && now.predictions >= 0;
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
