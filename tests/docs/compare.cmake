# Fails unless PAGE is what PROGRAM prints when called with ARGUMENT.
execute_process(COMMAND "${PROGRAM}" "${ARGUMENT}" OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
file(READ "${PAGE}" page)
if(NOT printed STREQUAL page)
  message(FATAL_ERROR "${PAGE} is not what the program prints now:\n  ${PROGRAM} ${ARGUMENT} > ${PAGE}")
endif()
