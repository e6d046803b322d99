# Makes the library available in the given WAY and builds and runs the consumer with it.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
set(consumer "${CMAKE_CURRENT_LIST_DIR}/consumer")
set(configure "${CMAKE_COMMAND}" -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_BUILD_TYPE=Release")

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Installs without tests and moves the result, which must not matter. Sets `prefix`.
function(install_library)
  run(${configure} -S "${SOURCE}" -B "${WORK}/library" -DROTARY_BUILD_TESTS=OFF -DROTARY_BUILD_BENCHMARKS=OFF
      -DROTARY_BUILD_EXAMPLES=OFF)
  run("${CMAKE_COMMAND}" --install "${WORK}/library" --prefix "${WORK}/installed")
  file(RENAME "${WORK}/installed" "${WORK}/moved")
  set(prefix "${WORK}/moved" PARENT_SCOPE)
endfunction()

# Builds the consumer's CMake project with the given definitions and runs its programs.
function(build_consumer)
  run(${configure} -S "${consumer}" -B "${WORK}/consumer" ${ARGN})
  run("${CMAKE_COMMAND}" --build "${WORK}/consumer")
  run("${WORK}/consumer/two_lines")
  run("${WORK}/consumer/one_rotation")
endfunction()

# Builds the consumer by the compiler alone, with the given compiler and flags, and runs its programs.
function(compile_consumer)
  foreach(program IN ITEMS two_lines one_rotation)
    run(${ARGN} -std=c++17 -O2 "${consumer}/${program}.cpp" -o "${WORK}/${program}")
    run("${WORK}/${program}")
  endforeach()
endfunction()

if(WAY STREQUAL "find_package")
  install_library()
  file(GLOB_RECURSE installed RELATIVE "${prefix}/include" "${prefix}/include/*")
  file(GLOB_RECURSE headers RELATIVE "${SOURCE}/include" "${SOURCE}/include/*")
  if(NOT installed STREQUAL headers)
    message(FATAL_ERROR "installed: ${installed}\nin the repository: ${headers}")
  endif()
  build_consumer(-DWAY=find_package "-DVERSION=${VERSION}" "-DCMAKE_PREFIX_PATH=${prefix}")
  # A project that asks for another version must not get this one.
  execute_process(COMMAND ${configure} -S "${consumer}" -B "${WORK}/refused" -DWAY=find_package -DVERSION=99.0
                          "-DCMAKE_PREFIX_PATH=${prefix}" RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE text)
  if(result EQUAL 0 OR NOT text MATCHES "requested version \"99.0\"")
    message(FATAL_ERROR "version 99.0 was not refused: ${text}")
  endif()
elseif(WAY MATCHES "add_subdirectory|fetch_content")
  build_consumer("-DWAY=${WAY}" "-DROTARY_SOURCE=${SOURCE}")
elseif(WAY STREQUAL "pkg_config")
  install_library()
  set(ENV{PKG_CONFIG_PATH} "${prefix}/share/pkgconfig")
  execute_process(COMMAND "${PKG_CONFIG}" --cflags "rotary = ${VERSION}" OUTPUT_VARIABLE flags
                          COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  compile_consumer("${COMPILER}" ${flags})
elseif(WAY STREQUAL "copy")
  file(COPY "${SOURCE}/include/rotary" DESTINATION "${WORK}/third_party")
  foreach(compiler IN LISTS COMPILERS)
    compile_consumer("${compiler}" "-I${WORK}/third_party")
  endforeach()
else()
  message(FATAL_ERROR "no such way: ${WAY}")
endif()
