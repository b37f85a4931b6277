// Internal: how many cores this process may use.
#pragma once

#include <string>

namespace isonorm {

// Those that it may run on (sched_getaffinity), or fewer where a control group allows it less time.
int usable_cores();

// The CPU time that the control groups of this process allow, in cores: the least of its groups and of all groups above them; 0: no limit.
// root: a folder before /proc and /sys; tests have their own. Sources: "Control Group v2" (cpu.max) and "CFS Bandwidth Control"
// (v1: cpu.cfs_quota_us, cpu.cfs_period_us) in the Linux kernel's documentation.
double cores_of_groups(const std::string& root);

}  // namespace isonorm
