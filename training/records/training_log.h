// The log of a training: JSON, a line per step, which is read back where a training goes on.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "training/records/training_result.h"

namespace isonorm::training {

inline constexpr std::string_view kLogBegin = "{\"manifest\":";
// First line of a log, {"manifest": {...}}.
std::string log_manifest(const Manifest& manifest);
// The lines of a training: a step, a test pass {"evaluation": {...}}, and the last one.
std::string log_step(const TrainingStep& step);
std::string log_evaluation(const Evaluation& evaluation, Input input);
std::string log_end(const TrainingResult& training);

// What a log has of the training of this manifest up to step `until`, of steps before it was extended, too: of each step
// and test pass the last line that was written. What belongs to other trainings, and a line that was cut off, is passed
// over.
TrainingCourse logged_course(std::istream& log, const Manifest& manifest, int until);
// The last training of a log: its options and command as its manifest has them, and its course. Throws if no line is a manifest,
// and if the stream cannot be read twice, as a pipe.
struct LoggedTraining {
  std::vector<std::pair<std::string, std::string>> options;
  std::string command;
  TrainingCourse course;
};
LoggedTraining last_logged(std::istream& log);
// Bytes of a log that a training which goes on after step `until` (0: which begins) keeps: all before the first later
// step of its own, which was logged after the checkpoint, and what other trainings logged before that. Half a line
// never.
int64_t logged_bytes(std::istream& log, const Manifest& manifest, int until);

}  // namespace isonorm::training
