// Which kernel slot a thread runs, for who counts what a slot asks of a device.
#pragma once

namespace isonorm::profile {

// The name of the innermost slot that the calling thread runs; "" outside of all slots, and while no profile is taken.
const char* running_kernel();

}  // namespace isonorm::profile
