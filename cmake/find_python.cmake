# rotary_find_python(<variable> <module>): a python3 of the path that can import the module, which the first one may lack
# where another has it.
function(rotary_python_imports result candidate)
  execute_process(COMMAND "${candidate}" -c "import ${rotary_python_module}" RESULT_VARIABLE status OUTPUT_QUIET
                                                                                             ERROR_QUIET)
  if(NOT status EQUAL 0)
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

function(rotary_find_python variable module)
  set(rotary_python_module "${module}") # the validator, which find_program calls from here, sees it
  find_program(${variable} python3 VALIDATOR rotary_python_imports)
  mark_as_advanced(${variable})
endfunction()
