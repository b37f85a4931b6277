// Logs of a training for a Loop: JSON lines, CSV, TensorBoard event files.
//
//   training::CsvLog log("run.csv");
//   loop.every(1, std::ref(log));
#pragma once

#include <memory>

#include "io/event_file.h"
#include "io/line_log.h"
#include "training/records/csv_table.h"
#include "training/records/training_log.h"
#include "training/records/training_result.h"

namespace isonorm::training {

// All functions throw Error (io) if the file cannot be written.
class RunLog {
 public:
  virtual ~RunLog() = default;

  virtual void step(const TrainingStep& step) = 0;
  virtual void evaluation(const Evaluation& evaluation) = 0;
  virtual void end(const TrainingResult&) {}
  // The entries of the log before the first step of this run. Evaluations of these steps are not logged again.
  const TrainingCourse& earlier() const { return earlier_; }

  bool operator()(const TrainingStep& s) { return step(s), true; }

 protected:
  bool has(const Evaluation& e) const {
    return !earlier_.evaluations.empty() && earlier_.evaluations.back().step >= e.step;
  }
  TrainingCourse earlier_;
};

// Writes {"manifest": {...}}, then an object for each step and test pass (training_log.h). Logs of other trainings in
// the same file stay; entries of this training after step `done` are removed. Throws if the file is not a log, or
// another process is writing it.
class JsonLog : public RunLog {
 public:
  JsonLog(const std::string& path, const Manifest& manifest, Input input, int done = 0);
  void step(const TrainingStep& step) override;
  void evaluation(const Evaluation& evaluation) override;
  void end(const TrainingResult& result) override;

 private:
  const Input input_;
  io::LineLog file_;
};

// Writes a row for each step and each test pass, with the other's cells empty. The file belongs to one training: its
// rows after step `done` are removed. Throws if it is not such a file, another process is writing it, or done = 0 and
// it has rows.
class CsvLog : public RunLog {
 public:
  explicit CsvLog(const std::string& path, int done = 0);
  void step(const TrainingStep& step) override;
  void evaluation(const Evaluation& evaluation) override;

 private:
  CsvTable table_;
};

// Reads the last training of a JSON log, or the training of a CSV log, which has neither options nor a command. Throws
// as last_logged(), if a row of a CSV log is invalid, and if a step is beyond ten million.
LoggedTraining read_logged(std::istream& log);

// Writes "train/loss", "train/lr", "train/gradient_norm", "test/loss" and "test/accuracy". TensorBoard drops entries of
// earlier files in the folder after step `done`. file() also accepts numbers, histograms and pictures of the user:
//   log.file().histogram("fc1/weight", s.step, net.fc1.weight);
class EventLog : public RunLog {
 public:
  explicit EventLog(const std::string& folder, int done = 0) : file_(folder, done + 1) {}
  void step(const TrainingStep& step) override;
  void evaluation(const Evaluation& evaluation) override;
  io::EventFile& file() { return file_; }

 private:
  io::EventFile file_;
};

}  // namespace isonorm::training
