# The single library isonorm::isonorm. Kernel sources (core/cpu/*.cpp that include core/cpu/target.h) are compiled once
# per instruction set. The base set comes first: if the compiler does not inline an inline function, the linker keeps
# the first copy, which every machine can run.

# ISONORM_UNITY compiles each line as one file.
set(units
    "core core/memory core/system core/kernels core/cpu"
    "autograd autograd/ops autograd/fused"
    "nn nn/recurrent nn/residual"
    "optim streams distributed distributed/parallel"
    "io io/data io/tokenizers"
    "exchange exchange/hub exchange/onnx"
    "reports training training/models training/options training/records training/run training/spec training/steps"
    "equivalence/judge equivalence/coordinates equivalence/lockstep equivalence/grid"
    "equivalence/convert equivalence/verify equivalence/reference"
    "equivalence/explain equivalence/causes equivalence/compare equivalence/text"
    "equivalence/services")
set(sources)
set(kernel_sources)
foreach(unit IN LISTS units)
  string(REPLACE " " ";" patterns "${unit}")
  list(TRANSFORM patterns APPEND "/*.cpp")
  file(GLOB found CONFIGURE_DEPENDS ${patterns})
  set_source_files_properties(${found} PROPERTIES UNITY_GROUP "${unit}")
  foreach(source IN LISTS found)
    file(STRINGS ${source} marks REGEX "core/cpu/target.h" LIMIT_COUNT 1)
    if(marks)
      list(APPEND kernel_sources ${source})
    else()
      list(APPEND sources ${source})
    endif()
  endforeach()
endforeach()

# isonorm_torch.py as a string: `isonorm convert` writes it to the converted folder.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS exchange/hub/isonorm_torch.py)
file(READ exchange/hub/isonorm_torch.py loader)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/isonorm_torch.cpp @ONLY CONTENT
     "namespace isonorm::hub {\nextern const char* const kIsonormTorch;\nconst char* const kIsonormTorch = R\"py(@loader@)py\";\n}\n")
list(APPEND sources ${PROJECT_BINARY_DIR}/isonorm_torch.cpp)
set_property(SOURCE io/tokenizers/pattern.cpp APPEND PROPERTY COMPILE_DEFINITIONS PCRE2_CODE_UNIT_WIDTH=8)  # texts are UTF-8

# core/cpu/bf16 is compiled once, for AVX-512 with bf16 products; the other kernels would be the same as for AVX-512.
file(GLOB bf16_sources CONFIGURE_DEPENDS core/cpu/bf16/*.cpp)
set(targets ${ISONORM_TARGETS})
if("avx512" IN_LIST targets)
  list(APPEND targets avx512_bf16)
endif()
set(objects)
foreach(target IN LISTS targets)
  set(name isonorm_kernels_${target})
  set(level -O3)
  if(target STREQUAL "base" AND NOT ISONORM_TARGETS STREQUAL "base")
    set(level -O2)  # for machines without AVX2
  endif()
  if(ISONORM_KERNELS STREQUAL "tested" AND NOT target STREQUAL ISONORM_NATIVE)
    set(level -O0)
  endif()
  if(target STREQUAL "avx512_bf16")
    add_library(${name} OBJECT ${bf16_sources})
    set(level -O3)
  else()
    add_library(${name} OBJECT ${kernel_sources})
  endif()
  string(REPLACE "_bf16" "" compiled_for ${target})
  target_compile_definitions(${name} PRIVATE ISONORM_TARGET=${compiled_for})
  target_compile_options(${name} PRIVATE ${ISONORM_FLAGS_${target}} $<${ISONORM_OPTIMISED}:${level}>)
  target_link_libraries(${name} PRIVATE isonorm_flags isonorm_blas)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET default)
  list(APPEND objects $<TARGET_OBJECTS:${name}>)
endforeach()

if(ISONORM_GPU_FORM STREQUAL "off")
  list(APPEND sources gpu/none.cpp)
elseif(ISONORM_GPU_FORM STREQUAL "ptx")
  list(APPEND objects $<TARGET_OBJECTS:isonorm_gpu_cuda>)
else()
  list(APPEND objects $<TARGET_OBJECTS:isonorm_gpu_${ISONORM_GPU_FORM}>)
endif()

# Files that compute are compiled with -O3. Their callers spend their time in these files, so -O3 would only make them
# slower to compile: they get -O1.
set(fast ${sources})
list(FILTER fast INCLUDE REGEX "^${PROJECT_SOURCE_DIR}/(core/.*|distributed/group.cpp|io/(number_format|sha256).cpp|io/tokenizers/.*|streams/map.cpp|equivalence/convert/sum_rounding.cpp|equivalence/verify/(canonical|compare_rows).cpp|equivalence/causes/moved_results.cpp|equivalence/judge/pairs.cpp)")
list(REMOVE_ITEM sources ${fast})
add_library(isonorm_fast OBJECT ${fast})
target_compile_options(isonorm_fast PRIVATE $<${ISONORM_OPTIMISED}:-O3>)
add_library(isonorm ${objects} $<TARGET_OBJECTS:isonorm_fast> ${sources})
add_library(isonorm::isonorm ALIAS isonorm)
target_compile_options(isonorm PRIVATE $<${ISONORM_OPTIMISED}:-O1>)
target_compile_features(isonorm PUBLIC cxx_std_20)
foreach(part isonorm_fast isonorm)
  target_link_libraries(${part} PRIVATE $<BUILD_INTERFACE:isonorm_flags> isonorm_blas Threads::Threads ZLIB::ZLIB isonorm_readers ${CMAKE_DL_LIBS})
  set_target_properties(${part} PROPERTIES UNITY_BUILD ${ISONORM_UNITY} UNITY_BUILD_MODE GROUP POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET default)
endforeach()
target_include_directories(isonorm_fast PRIVATE ${PROJECT_SOURCE_DIR})
if(PROJECT_IS_TOP_LEVEL)  # in an enclosing project, as in a test, every file compiles by its own includes
  target_precompile_headers(isonorm PRIVATE ${ISONORM_PRECOMPILED})
endif()
if(ISONORM_GPU_FORM STREQUAL "cuda")
  target_link_libraries(isonorm PRIVATE CUDA::cudart_static ${CMAKE_DL_LIBS})
  set_target_properties(isonorm PROPERTIES LINKER_LANGUAGE CXX)
elseif(ISONORM_GPU_FORM STREQUAL "ptx")
  target_link_libraries(isonorm PRIVATE $<BUILD_INTERFACE:isonorm_ptx> ${CMAKE_DL_LIBS})
  set_target_properties(isonorm PROPERTIES LINKER_LANGUAGE CXX)
endif()
set_target_properties(isonorm PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON DEFINE_SYMBOL "" VERSION ${PROJECT_VERSION} SOVERSION
                                         ${PROJECT_VERSION_MAJOR})
if(BUILD_SHARED_LIBS)
  target_link_options(isonorm PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map)
  set_target_properties(isonorm PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
endif()

# The public headers as users see them: see public_headers.cmake.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} core/*.h autograd/*.h nn/*.h optim/*.h streams/*.h
     io/*.h reports/*.h distributed/*.h training/*.h exchange/*.h equivalence/*.h gpu/device.h gpu/steps/captured.h)
list(FILTER headers EXCLUDE REGEX "^core/cpu/")
foreach(header IN LISTS headers)  # headers with "// Internal: " are included by sources only
  file(STRINGS ${header} first_line LIMIT_COUNT 1)
  if(first_line MATCHES "^// Internal: ")
    list(REMOVE_ITEM headers ${header})
  endif()
endforeach()
list(APPEND headers isonorm.h)
set(ISONORM_PUBLIC_HEADERS ${PROJECT_BINARY_DIR}/public)
list(TRANSFORM headers PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE header_paths)
add_custom_command(
  OUTPUT ${PROJECT_BINARY_DIR}/public.stamp
  COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR} -D OUT=${ISONORM_PUBLIC_HEADERS} -D "HEADERS=${headers}" -P
          ${PROJECT_SOURCE_DIR}/cmake/public_headers.cmake
  COMMAND ${CMAKE_COMMAND} -E touch ${PROJECT_BINARY_DIR}/public.stamp
  DEPENDS ${header_paths} ${PROJECT_SOURCE_DIR}/cmake/public_headers.cmake
  VERBATIM)
add_custom_target(isonorm_headers ALL DEPENDS ${PROJECT_BINARY_DIR}/public.stamp)
add_dependencies(isonorm isonorm_headers)

# Users include <isonorm/isonorm.h>. An enclosing project gets the copies as system headers, since its warnings are
# about its own code. Our own programs use the sources themselves.
target_include_directories(isonorm PRIVATE ${PROJECT_SOURCE_DIR} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
if(PROJECT_IS_TOP_LEVEL)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/include)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/include/isonorm SYMBOLIC)
  target_include_directories(isonorm INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                             $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>)
else()
  target_include_directories(isonorm SYSTEM INTERFACE $<BUILD_INTERFACE:${ISONORM_PUBLIC_HEADERS}>)
endif()

# The description of the build in manifests.
string(TOUPPER "${CMAKE_BUILD_TYPE}" config)
string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${config}} -fno-fast-math -fno-math-errno -fno-trapping-math" flags)
string(REGEX REPLACE "-f[a-z]+-prefix-map=[^ ]+ " "" flags "${flags}")  # build folders
set_property(SOURCE training/records/manifest.cpp APPEND PROPERTY COMPILE_DEFINITIONS
             ISONORM_VERSION="${PROJECT_VERSION}" "ISONORM_FLAGS=\"${flags}\"")
target_link_libraries(isonorm PRIVATE $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)
