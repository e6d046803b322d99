# Checks each header of INCLUDE alone (twice over, for the include guard), all of them in one file, and a program that
# rotates. Unless FLAGS are -fsyntax-only, links it with a second file of the headers that need no other library, which
# shows functions that are defined twice, and runs it.
cmake_minimum_required(VERSION 3.25)
separate_arguments(flags UNIX_COMMAND "${FLAGS}")
list(TRANSFORM OPTIONAL_INCLUDES PREPEND -idirafter)
set(compile "${COMPILER}" -std=c++17 -O2 ${STRICT} -Werror ${flags} "-I${INCLUDE}" -iquote
            "${CMAKE_CURRENT_LIST_DIR}" ${OPTIONAL_INCLUDES})

# A header for another library meets the hostile macros after that library's own headers, which would not survive them.
set(eigen_needs "#include <unsupported/Eigen/CXX11/Tensor>\n")
set(huggingface_needs "#include <nlohmann/json.hpp>\n")
set(tbb_needs "#include <tbb/parallel_for.h>\n")
set(execution_needs "#include <execution>\n")

file(REMOVE_RECURSE "${WORK}")
file(GLOB headers RELATIVE "${INCLUDE}" "${INCLUDE}/rotary/*.hpp" "${INCLUDE}/rotary/parallel/*.hpp")
if(NOT headers)
  message(FATAL_ERROR "no header in ${INCLUDE}/rotary")
endif()
set(all_needs "${eigen_needs}${huggingface_needs}${execution_needs}")
if(HAS_TBB)
  string(APPEND all_needs "${tbb_needs}")
else()
  list(REMOVE_ITEM headers rotary/parallel/tbb.hpp)
endif()
set(alone "")
set(together "")
set(everything "#ifdef HOSTILE_MACROS\n${all_needs}#include \"hostile_macros.hpp\"\n#endif\n")
foreach(header IN LISTS headers)
  cmake_path(GET header STEM name)
  file(WRITE "${WORK}/${name}.cpp" "#ifdef HOSTILE_MACROS\n${${name}_needs}#include \"hostile_macros.hpp\"\n#endif\n"
       "#include <${header}>\n#include <${header}>\n")
  list(APPEND alone "${WORK}/${name}.cpp")
  string(APPEND everything "#include <${header}>\n")
  if(NOT DEFINED ${name}_needs)
    string(APPEND together "#include <${header}>\n")
  endif()
endforeach()
set(program "${CMAKE_CURRENT_LIST_DIR}/rotation.cpp")
file(WRITE "${WORK}/everything.cpp" "${everything}")
execute_process(COMMAND ${compile} -fsyntax-only ${alone} "${WORK}/everything.cpp" COMMAND_ERROR_IS_FATAL ANY)
if("-fsyntax-only" IN_LIST flags)
  execute_process(COMMAND ${compile} -DROTATION_NAME=main "${program}" COMMAND_ERROR_IS_FATAL ANY)
  return()
endif()

file(WRITE "${WORK}/together.cpp" "${together}")
execute_process(COMMAND ${compile} -DROTATION_NAME=main "${program}" "${WORK}/together.cpp" -o "${WORK}/rotation"
                        COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${WORK}/rotation" COMMAND_ERROR_IS_FATAL ANY)
