// The log of a training as lines of JSON, which is read back when a training is resumed.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "training/records/training_result.h"

namespace isonorm::training {

inline constexpr std::string_view kLogBegin = "{\"manifest\":";
// The first line of a log: {"manifest": {...}}.
std::string log_manifest(const Manifest& manifest);
// The lines of a training: a step, a test pass {"evaluation": {...}}, and (below) the last line.
std::string log_step(const TrainingStep& step);
std::string log_evaluation(const Evaluation& evaluation, Input input);
std::string log_end(const TrainingResult& training);

// Reads the course of the training with this manifest from a log, up to step `until`, including steps before it was
// extended. If a step or test pass was logged several times, the last line counts. Ignores other trainings and an
// incomplete line.
TrainingCourse logged_course(std::istream& log, const Manifest& manifest, int until);
// Reads the last training of a log: options and command from its manifest, and its course. Throws if no line is a
// manifest, or if the stream cannot be read twice, like a pipe.
struct LoggedTraining {
  std::vector<std::pair<std::string, std::string>> options;
  std::string command;
  TrainingCourse course;
};
LoggedTraining last_logged(std::istream& log);
// Returns the number of bytes of a log to keep when a training resumes after step `until` (0: it starts): everything
// before its first later step, which was logged after the checkpoint, including other trainings' lines. Never ends
// within a line.
int64_t logged_bytes(std::istream& log, const Manifest& manifest, int until);

}  // namespace isonorm::training
