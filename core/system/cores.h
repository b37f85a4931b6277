// Internal: how many cores this process may use.
#pragma once

#include <string>

namespace isonorm {

// Those that it may run on (sched_getaffinity), or fewer where a control group allows it less time.
int usable_cores();

// What the `cpu.max` of the group `path` ("/a/b") and of those above it allow, in cores; the folders of all groups are
// in `root`. 0 where nothing is said. Source: Control Group v2 in the Linux kernel's documentation.
double cores_of_group(const std::string& root, std::string path);

}  // namespace isonorm
