# The harness over all rows of tests/op_cases, and the program that prints docs/ops.md from the same rows.
file(GLOB op_cases CONFIGURE_DEPENDS op_cases/*.cpp)
add_library(isonorm_op_cases STATIC ${op_cases} support/array.cpp support/checks.cpp support/declarations.cpp support/draw.cpp
            support/ops_docs.cpp support/placement.cpp)
target_link_libraries(isonorm_op_cases PUBLIC isonorm_test_device)
target_include_directories(isonorm_op_cases PUBLIC ${PROJECT_SOURCE_DIR})
target_precompile_headers(isonorm_op_cases PRIVATE op_cases/groups.h)
target_compile_options(isonorm_op_cases PRIVATE $<$<CONFIG:Release>:-O1>)  # rows run once: they need not be fast

isonorm_test(ops ops_test.cpp fused_test.cpp coverage_test.cpp)
target_link_libraries(test_ops PRIVATE isonorm_op_cases)

# The same rows and cases on a device.
isonorm_test(ops_gpu ops_test.cpp fused_test.cpp)
isonorm_run_on_device(ops_gpu)
target_link_libraries(test_ops_gpu PRIVATE isonorm_op_cases)

if(ISONORM_GPU_FORM STREQUAL "ptx")
  isonorm_test(ops_ptx ops_test.cpp fused_test.cpp support/on_device.cpp)
  target_link_libraries(test_ops_ptx PRIVATE isonorm_op_cases)
elseif(ISONORM_GPU_FORM STREQUAL "cuda")
  add_executable(test_ops_cuda EXCLUDE_FROM_ALL ops_test.cpp fused_test.cpp support/on_device.cpp)
  target_link_libraries(test_ops_cuda PRIVATE isonorm_test_support isonorm_op_cases)
  target_precompile_headers(test_ops_cuda REUSE_FROM isonorm_test_support)
endif()

add_executable(ops_docs ops_docs.cpp)
target_link_libraries(ops_docs PRIVATE isonorm_op_cases)

isonorm_test(includes includes_test.cpp)
