# Installs the tools alone from the build directory BUILD and runs them from there; PYTHON has matplotlib, or is NOTFOUND.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${WORK}")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --component tools --prefix "${WORK}"
                        COMMAND_ERROR_IS_FATAL ANY)
file(GLOB_RECURSE installed RELATIVE "${WORK}" "${WORK}/*")
if(NOT installed STREQUAL "bin/rotary-inspect;bin/rotary-inspect-plot")
  message(FATAL_ERROR "the component tools has: ${installed}")
endif()
execute_process(COMMAND "${WORK}/bin/rotary-inspect" "${CONFIG}" OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
if(NOT text MATCHES "rope_theta: 500000")
  message(FATAL_ERROR "rotary-inspect printed: ${text}")
endif()

if(PYTHON)
  cmake_path(GET PYTHON PARENT_PATH python_directory)
  execute_process(COMMAND "${CMAKE_COMMAND}" -E env "PATH=${python_directory}:$ENV{PATH}" "${WORK}/bin/rotary-inspect"
                          "${CONFIG}" --plot "${WORK}/plot.svg" OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  file(READ "${WORK}/plot.svg" plot LIMIT 1000)
  if(NOT plot MATCHES "<svg")
    message(FATAL_ERROR "rotary-inspect drew: ${plot}")
  endif()
endif()
