# Compares the time to compile `#include <rotary/rotary.hpp>` with that of an empty file. By hand:
#   cmake -DCOMPILER=g++ -DINCLUDE=include -DLIMIT=150 -DWORK=build/include_time -P tests/build/include_time.cmake
# Other work on the machine can only add to a measured time, so the least of several is nearest to the truth: the limit
# applies to the difference of the least times. The medians' difference is printed beside it. Above the limit, which a
# busy machine may cause, there are more rounds.
cmake_minimum_required(VERSION 3.25)
set(rounds 11)
set(most_rounds 55)
cmake_path(ABSOLUTE_PATH WORK)
cmake_path(ABSOLUTE_PATH INCLUDE)
file(WRITE "${WORK}/empty.cpp" "int main() {}\n")
file(WRITE "${WORK}/library.cpp" "#include <rotary/rotary.hpp>\nint main() {}\n")

# Appends to times_<name> the microseconds that it takes to compile <name>.cpp.
function(measure name)
  string(TIMESTAMP before "%s%f")
  execute_process(COMMAND "${COMPILER}" -std=c++17 -O2 "-I${INCLUDE}" -c "${WORK}/${name}.cpp" -o "${WORK}/${name}.o"
                          COMMAND_ERROR_IS_FATAL ANY)
  string(TIMESTAMP after "%s%f")
  math(EXPR time "${after} - ${before}")
  set(times_${name} ${times_${name}} ${time} PARENT_SCOPE)
endfunction()

# Sets least_<name> and median_<name>, in microseconds.
function(summarize name)
  list(SORT times_${name} COMPARE NATURAL)
  list(LENGTH times_${name} count)
  math(EXPR middle "${count} / 2")
  list(GET times_${name} 0 least)
  list(GET times_${name} ${middle} median)
  set(least_${name} ${least} PARENT_SCOPE)
  set(median_${name} ${median} PARENT_SCOPE)
endfunction()

measure(empty) # warms the caches
measure(library)
set(times_empty "")
set(times_library "")
set(round 0)
while(round LESS rounds OR (least GREATER LIMIT AND round LESS most_rounds))
  measure(empty)
  measure(library)
  summarize(empty)
  summarize(library)
  math(EXPR least "(${least_library} - ${least_empty}) / 1000")
  math(EXPR median "(${median_library} - ${median_empty}) / 1000")
  math(EXPR round "${round} + 1")
endwhile()

message(STATUS "including rotary.hpp costs ${least} ms (median ${median} ms) over an empty file, limit ${LIMIT} ms; "
               "${round} rounds with ${COMPILER}")
if(least GREATER LIMIT)
  message(FATAL_ERROR "too slow to include")
endif()
