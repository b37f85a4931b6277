# `cpack` makes Debian packages from a shared build for /usr: libisonorm0, libisonorm-dev and isonorm, from the components
# library, dev and program. Like Debian's tools, it takes the maintainer from DEBFULLNAME and DEBEMAIL.
if(CMAKE_HOST_SYSTEM_NAME STREQUAL "Linux" AND NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  return()  # another prefix: CMake's paths differ from Debian's
endif()

set(maintainer "isonorm authors <isonorm@localhost>")
if(DEFINED ENV{DEBEMAIL})
  set(maintainer "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()
set(revision 1)
set(package_library libisonorm${PROJECT_VERSION_MAJOR})
set(package_dev libisonorm-dev)
set(package_program isonorm)

# The files copyright and changelog, which every package has.
file(STRINGS LICENSE lines)
list(POP_FRONT lines)
list(JOIN lines "\n " license)
string(REPLACE "\n \n" "\n .\n" license "\n ${license}")
string(REGEX REPLACE "^\n  ?\n" "\n" license "${license}")
string(REGEX MATCH "Copyright \\(c\\) ([^\n]*)" _ "${license}")
set(holder "${CMAKE_MATCH_1}")
configure_file(scripts/packaging/copyright.in packaging/copyright @ONLY)
configure_file(scripts/packaging/changelog.in packaging/changelog.Debian @ONLY)
find_program(ISONORM_GZIP gzip REQUIRED)
execute_process(COMMAND ${ISONORM_GZIP} -9nfk ${PROJECT_BINARY_DIR}/packaging/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)
foreach(component library dev program)
  install(FILES ${PROJECT_BINARY_DIR}/packaging/copyright ${PROJECT_BINARY_DIR}/packaging/changelog.Debian.gz
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package_${component}} COMPONENT ${component} EXCLUDE_FROM_ALL)
endforeach()
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/isonorm COMPONENT program EXCLUDE_FROM_ALL)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/isonorm COMPONENT program EXCLUDE_FROM_ALL)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libisonorm-dev COMPONENT dev EXCLUDE_FROM_ALL
        FILES_MATCHING PATTERN *.cpp)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGE_CONTACT "${maintainer}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each has its own
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL library dev program)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${revision})
set(CPACK_DEBIAN_PACKAGE_SOURCE isonorm)

# Before version 1 every version may change the library's ABI: each needs its own.
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY =)
set(CPACK_COMPONENT_DEV_DEPENDS library)
set(CPACK_COMPONENT_PROGRAM_DEPENDS library)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${package_library})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
# The permissions are set here: CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION makes the file executable in CMake 4.4.
configure_file(scripts/packaging/triggers packaging/triggers COPYONLY FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/packaging/triggers)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION
[[deep learning where three kinds of normalization are one model
Tensors, automatic differentiation, modules and optimizers in C++20, on
CPUs. Transformers with Pre-LN, Pre-RMSNorm and Pre-CRMSNorm are one model
whose residual stream is held in different coordinates; the library converts
between them and measures whether two models are one function.
This package has the shared library.]])
set(CPACK_DEBIAN_DEV_PACKAGE_NAME ${package_dev})
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS isonorm)
set(CPACK_DEBIAN_DEV_DESCRIPTION
[[deep learning with normalization - development files
Tensors, automatic differentiation, modules and optimizers in C++20, on
CPUs. This package has the headers, the files by which CMake and pkg-config
find the library, and examples.]])
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME ${package_program})
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "libisonorm-dev, dataset-fashion-mnist")
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION
[[trains and compares Transformers that differ in their normalization
Shows that Transformers with Pre-LN, Pre-RMSNorm and Pre-CRMSNorm are one
model: it trains them side by side, converts checkpoints between them, and
says where two models differ and why. It also trains language models and
classifiers of images, samples from them, and plots their logs.
This package has the program, its manual pages and its completions for bash
and zsh.]])
include(CPack)
