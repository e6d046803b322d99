# What tests, benchmarks and examples are compiled with. Private to this repository: none of it reaches rotary::rotary.
add_library(rotary_development INTERFACE)
target_link_libraries(rotary_development INTERFACE rotary::rotary)

# The warnings under which the headers promise to be silent.
set(ROTARY_STRICT_FLAGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion)
if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  target_compile_options(rotary_development INTERFACE ${ROTARY_STRICT_FLAGS}
                                                      $<$<BOOL:${ROTARY_WARNINGS_AS_ERRORS}>:-Werror>)
endif()
if(ROTARY_SANITIZE)
  set(sanitizer_flags -fsanitize=${ROTARY_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(rotary_development INTERFACE ${sanitizer_flags})
  target_link_options(rotary_development INTERFACE ${sanitizer_flags})
endif()
