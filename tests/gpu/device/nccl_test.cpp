// This library's declarations of NCCL's interface, against NCCL's own header if it is present.
#include "gpu/libraries/nccl.h"

#if !defined(ISONORM_GPU_EMULATED) && __has_include(<nccl.h>)
#include <nccl.h>

#include <cstddef>
#include <type_traits>

namespace isonorm::gpu::nccl {
namespace {

// True if values of both types are passed in the same way: pointers, integers and enumerators, or plain structs, of one
// size.
template <class A, class B>
constexpr bool alike = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>&& std::is_class_v<A> ==
                                                     std::is_class_v<B>&& std::is_trivially_copyable_v<A>;
template <class Ours, class Theirs> constexpr bool same_call = false;
template <class R, class... A, class S, class... B>
constexpr bool same_call<R (*)(A...), S (*)(B...)> = [] {
  if constexpr (sizeof...(A) == sizeof...(B)) return (alike<R, S> && ... && alike<A, B>);
  return false;
}();

static_assert(same_call<decltype(Api::get_unique_id), decltype(&ncclGetUniqueId)>);
static_assert(same_call<decltype(Api::comm_init_rank_config), decltype(&ncclCommInitRankConfig)>);
static_assert(same_call<decltype(Api::comm_get_async_error), decltype(&ncclCommGetAsyncError)>);
static_assert(same_call<decltype(Api::comm_finalize), decltype(&ncclCommFinalize)>);
static_assert(same_call<decltype(Api::comm_destroy), decltype(&ncclCommDestroy)>);
static_assert(same_call<decltype(Api::comm_abort), decltype(&ncclCommAbort)>);
static_assert(same_call<decltype(Api::group_start), decltype(&ncclGroupStart)>);
static_assert(same_call<decltype(Api::group_end), decltype(&ncclGroupEnd)>);
static_assert(same_call<decltype(Api::send), decltype(&ncclSend)>);
static_assert(same_call<decltype(Api::recv), decltype(&ncclRecv)>);
static_assert(same_call<decltype(Api::all_gather), decltype(&ncclAllGather)>);
static_assert(same_call<decltype(Api::get_error_string), decltype(&ncclGetErrorString)>);
static_assert(same_call<decltype(Api::get_last_error), decltype(&ncclGetLastError)>);

static_assert(sizeof(Id) == sizeof(ncclUniqueId));
static_assert(int{success} == int{ncclSuccess} && int{unhandled_cuda_error} == int{ncclUnhandledCudaError});
static_assert(int{system_error} == int{ncclSystemError} && int{internal_error} == int{ncclInternalError});
static_assert(int{invalid_argument} == int{ncclInvalidArgument} && int{invalid_usage} == int{ncclInvalidUsage});
static_assert(int{remote_error} == int{ncclRemoteError} && int{in_progress} == int{ncclInProgress});
static_assert(int{int8} == int{ncclInt8});
static_assert(sizeof(Config) <= sizeof(ncclConfig_t) && offsetof(Config, size) == offsetof(ncclConfig_t, size));
static_assert(offsetof(Config, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(Config, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(Config, blocking) == offsetof(ncclConfig_t, blocking));

}  // namespace
}  // namespace isonorm::gpu::nccl
#endif
