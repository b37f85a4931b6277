# The one library, isonorm::isonorm. Kernel sources (core/cpu/*.cpp that include core/cpu/target.h) are compiled once per instruction set;
# the base set comes first, so that of inline functions which the compiler did not inline the linker keeps the version every machine runs.

set(folders core core/cpu autograd autograd/ops autograd/fused nn optim equivalence io data gpu)
set(sources)
set(kernel_sources)
foreach(folder IN LISTS folders)
  file(GLOB found CONFIGURE_DEPENDS ${folder}/*.cpp)
  foreach(source IN LISTS found)
    file(STRINGS ${source} marks REGEX "core/cpu/target.h" LIMIT_COUNT 1)
    if(marks)
      list(APPEND kernel_sources ${source})
    else()
      list(APPEND sources ${source})
    endif()
  endforeach()
endforeach()

set(objects)
foreach(target IN LISTS ISONORM_TARGETS)
  set(name isonorm_kernels_${target})
  add_library(${name} OBJECT ${kernel_sources})
  target_compile_definitions(${name} PRIVATE ISONORM_TARGET=${target})
  target_compile_options(${name} PRIVATE ${ISONORM_FLAGS_${target}} $<$<CONFIG:Release>:-O3>)
  target_link_libraries(${name} PRIVATE isonorm_flags isonorm_blas)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  list(APPEND objects $<TARGET_OBJECTS:${name}>)
endforeach()

add_library(isonorm ${objects} ${sources})
add_library(isonorm::isonorm ALIAS isonorm)
target_link_libraries(isonorm PRIVATE $<BUILD_INTERFACE:isonorm_flags> $<BUILD_INTERFACE:isonorm_blas> OpenMP::OpenMP_CXX ZLIB::ZLIB)
target_compile_features(isonorm PUBLIC cxx_std_20)
target_include_directories(isonorm PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
set_target_properties(isonorm PROPERTIES POSITION_INDEPENDENT_CODE ON)

# What a manifest says about the build.
string(TOUPPER "${CMAKE_BUILD_TYPE}" config)
string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${config}} -fno-math-errno -fno-trapping-math" flags)
set_property(SOURCE equivalence/manifest.cpp APPEND PROPERTY COMPILE_DEFINITIONS
             ISONORM_VERSION="${PROJECT_VERSION}" "ISONORM_FLAGS=\"${flags}\"")
target_link_libraries(isonorm PRIVATE $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)
