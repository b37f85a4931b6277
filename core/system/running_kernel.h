// The kernel slot that a thread is running, for code that counts a slot's requests to a device.
#pragma once

namespace isonorm::profile {

// The name of the innermost slot that the calling thread is running; "" outside of all slots, and while no profile is
// recorded.
const char* running_kernel();

}  // namespace isonorm::profile
