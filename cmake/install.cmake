# Installs the headers, the CMake package and the pkg-config file. The package holds no compiled code, so everything
# goes to architecture-independent directories, and nothing in it names the prefix: it may be moved after the install.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_DATADIR}/cmake/rotary")

install(TARGETS rotary EXPORT rotaryTargets INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(
  DIRECTORY "${PROJECT_SOURCE_DIR}/include/rotary"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING
  PATTERN "*.hpp"
  PATTERN "*.inl")
install(EXPORT rotaryTargets NAMESPACE rotary:: DESTINATION "${package_dir}")

configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/rotaryConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/rotaryConfig.cmake" INSTALL_DESTINATION "${package_dir}")
# Until 1.0 a new minor version may change the interface.
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/rotaryConfigVersion.cmake" COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/rotaryConfig.cmake" "${PROJECT_BINARY_DIR}/rotaryConfigVersion.cmake"
        DESTINATION "${package_dir}")

set(pkgconfig_dir "${CMAKE_INSTALL_DATADIR}/pkgconfig")
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY
           "${CMAKE_INSTALL_PREFIX}/${pkgconfig_dir}" OUTPUT_VARIABLE includedir_from_pc)
configure_file("${CMAKE_CURRENT_LIST_DIR}/rotary.pc.in" "${PROJECT_BINARY_DIR}/rotary.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/rotary.pc" DESTINATION "${pkgconfig_dir}")

# rotary_install_tool(<target> <script>...): a program and the scripts that it runs, in one directory. `cmake --install
# <build> --component tools` installs the tools alone.
function(rotary_install_tool target)
  install(TARGETS ${target} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT tools)
  install(PROGRAMS ${ARGN} DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT tools)
endfunction()
