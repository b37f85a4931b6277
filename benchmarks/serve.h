// The line protocol that benchmarks/sides.py uses to let several programs work alternately. One JSON object per line:
//
//   out  {"event": "ready", ...}       when everything is built and warmed up
//   in   go N WORK...                  do WORK N times
//   out  {"ms": [...], ...}            the time of each
//   in   end                           or end of input
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace isonorm::bench {

// Does a work `times` times and returns the answer to send. Throws on an unknown work.
using Work = std::function<nlohmann::json(int times, const std::vector<std::string>& work)>;

// Sends the ready line with the facts in `ready`, then answers requests until the end of input.
void serve(nlohmann::json ready, const Work& work);

// CPU, threads, BLAS and compiler, for the ready lines of our programs.
nlohmann::json environment();

}  // namespace isonorm::bench
