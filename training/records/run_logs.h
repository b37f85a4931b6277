// Logs of a training, ready for a loop: lines of JSON, CSV, event files of TensorBoard.
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

// All throw Error (io) where it cannot be written.
class RunLog {
 public:
  virtual ~RunLog() = default;

  virtual void step(const TrainingStep& step) = 0;
  virtual void evaluation(const Evaluation& evaluation) = 0;
  virtual void end(const TrainingResult&) {}
  // What it says of the steps up to the one that the training goes on behind; evaluations of these it does not take twice.
  const TrainingCourse& earlier() const { return earlier_; }

  bool operator()(const TrainingStep& s) { return step(s), true; }

 protected:
  bool has(const Evaluation& e) const {
    return !earlier_.evaluations.empty() && earlier_.evaluations.back().step >= e.step;
  }
  TrainingCourse earlier_;
};

// {"manifest": {...}}, then an object a step and test pass (training_log.h). What other trainings logged in the file stays; what
// this one logged behind step `done` goes. Throws where the file is no log or another process is writing it.
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

// A row a step and test pass, the cells of the other empty. The file is of one training: its rows behind step `done` go. Throws where
// it is not such a file, another process is writing it, or a training that begins (done = 0) finds rows there.
class CsvLog : public RunLog {
 public:
  explicit CsvLog(const std::string& path, int done = 0);
  void step(const TrainingStep& step) override;
  void evaluation(const Evaluation& evaluation) override;

 private:
  CsvTable table_;
};

// The last training of a JSON log, or the training of a CSV log, which has neither options nor a command. Throws as last_logged(),
// if a row of a CSV log is none, and if there is a step beyond ten million.
LoggedTraining read_logged(std::istream& log);

// "train/loss", "train/lr", "train/gradient_norm", "test/loss" and "test/accuracy". TensorBoard drops entries of
// earlier files in the folder after step `done`. file() also takes the user's numbers, histograms and pictures:
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
