# An overlay port, beside the sources that it builds: vcpkg install isonorm --overlay-ports=scripts/packaging/vcpkg
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../.." ABSOLUTE)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -DISONORM_GPU=off -DISONORM_UNITY=ON -DISONORM_BUILD_TESTS=OFF -DISONORM_BUILD_TOOLS=OFF -DISONORM_BUILD_EXAMPLES=OFF
          -DISONORM_BUILD_BENCHMARKS=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/isonorm)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
