// A proof or a training as JSON: one object for the whole result, one line per step for a log.
#pragma once

#include <iosfwd>
#include <string>

#include "equivalence/result.h"
#include "equivalence/training_result.h"

namespace isonorm::equivalence {

// {"verdict" ("equivalent", "not equivalent" or "undecided"), "sentence", "horizon", "manifest", "control", "controls",
// "reference", "runs", "test_count", "seconds"}: indented by two, with a newline at the end. `horizon` is {"steps",
// "of", "ended_by", "term", "limit", "resolution"} (result.h), `control` has the largest deviations of all `controls`,
// `runs` is what is judged. A number that is not finite, and what did not run, is null.
std::string to_json(const ProofResult& proof);

// {"form", "accuracy", "test_loss", "manifest", "first_step", "earlier", "losses", "evaluations", ...}; accuracy and
// test loss of the last evaluation, null where there is none; so is the perplexity of an evaluation on images.
std::string to_json(const TrainingResult& training);

// First line of a log, {"manifest": {...}}.
std::string log_manifest(const Manifest& manifest);
// A step's line: phase, step, lr, loss of the reference, and of every control and run of this phase its loss and
// deviations at this step.
std::string log_step(const StepInfo& info);
// Last line: {"verdict", "sentence", "horizon", "seconds"}.
std::string log_verdict(const ProofResult& proof);

// The lines of a training: a step, a test pass {"evaluation": {...}}, and the last one.
std::string log_step(const TrainingStep& step);
std::string log_evaluation(const Evaluation& evaluation, ModelKind model);
std::string log_end(const TrainingResult& training);

// What a log has of the training of this manifest up to step `until`: of each step and test pass the last line that was
// written. What belongs to other trainings, and a line that was cut off, is passed over. Of a training that was
// extended `earlier` says which options its steps had before (TrainingResult::earlier_options).
TrainingCourse logged_course(std::istream& log, const Manifest& manifest, int until, const std::string& earlier = {});
// Bytes of a log that a training which goes on after step `until` (0: which begins) keeps: all before the first later
// step of its own, which was logged after the checkpoint, and what other trainings logged before that. Half a line
// never. Throws where what is there begins otherwise than a log does.
int64_t logged_bytes(std::istream& log, const Manifest& manifest, int until);

}  // namespace isonorm::equivalence
