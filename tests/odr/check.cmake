# Links one source compiled with and without -mavx2 -mfma into one program. The linker keeps one of two functions of the
# same name: whichever object comes first, an old CPU must get through the part that was compiled for it.
cmake_minimum_required(VERSION 3.25)
set(compile "${COMPILER}" -std=c++17 -O2 "-I${INCLUDE}")
set(rotation "${CMAKE_CURRENT_LIST_DIR}/../headers/rotation.cpp")
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
set(flags_plain "")
set(flags_avx2 -mavx2 -mfma)
foreach(unit IN ITEMS plain avx2)
  execute_process(COMMAND ${compile} ${flags_${unit}} -DFLOAT_ONLY -DROTATION_NAME=rotation_${unit} -c "${rotation}"
                          -o "${WORK}/${unit}.o" COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND "${NM}" --defined-only "${WORK}/${unit}.o" OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  # Letters of symbols that the linker merges or exports; lower case ones are local, but for u, v and w.
  string(REGEX MATCHALL "[A-Zuvw] [^\n]+" symbols_${unit} "${symbols}")
endforeach()

# What both define must not be the library's, and must be free of AVX instructions (their names begin with v), which
# the linker would otherwise hand to `plain` as well.
foreach(symbol IN LISTS symbols_avx2)
  if(NOT symbol IN_LIST symbols_plain)
    continue()
  endif()
  string(SUBSTRING "${symbol}" 2 -1 name)
  execute_process(COMMAND "${OBJDUMP}" -d --no-show-raw-insn "--section=.text.${name}" "${WORK}/avx2.o"
                  OUTPUT_VARIABLE code ERROR_QUIET)
  if(name MATCHES "6rotary" OR code MATCHES "\tv[a-z]")
    message(SEND_ERROR "compiled with -mavx2, this replaces the function of other translation units: ${name}")
  endif()
endforeach()

set(main "${CMAKE_CURRENT_LIST_DIR}/main.cpp")
set(order_1 plain avx2)
set(order_2 avx2 plain)
foreach(order IN ITEMS order_1 order_2)
  list(TRANSFORM ${order} REPLACE "(.+)" "${WORK}/\\1.o" OUTPUT_VARIABLE objects)
  execute_process(COMMAND ${compile} "${main}" ${objects} -o "${WORK}/${order}" COMMAND_ERROR_IS_FATAL ANY)
  foreach(cpu IN LISTS CPUS)
    message(STATUS "${order} on ${cpu}")
    set(emulator "${QEMU}" -cpu ${cpu})
    if(cpu STREQUAL native)
      set(emulator "")
    endif()
    execute_process(COMMAND ${emulator} "${WORK}/${order}" RESULT_VARIABLE result)
    if(NOT result EQUAL 0)
      message(SEND_ERROR "${order} on ${cpu}: ${result}")
    endif()
  endforeach()
endforeach()
