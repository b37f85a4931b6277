# Makes the program write its manual pages and completions: OUT/man1/*.1.gz (*.1 without GZIP), OUT/isonorm (bash),
# OUT/_isonorm (zsh).
# cmake -D PROGRAM=isonorm -D OUT=dir -D GZIP=gzip -P manual.cmake
function(write file)
  execute_process(COMMAND ${PROGRAM} ${ARGN} OUTPUT_FILE ${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${OUT})
file(MAKE_DIRECTORY ${OUT}/man1)
write(${OUT}/isonorm completion bash)
write(${OUT}/_isonorm completion zsh)
file(STRINGS ${OUT}/isonorm verbs REGEX "^ +words=\"[a-z].* --help --version\"")
string(REGEX REPLACE ".*\"(.*) --help.*" "\\1" verbs "${verbs}")
separate_arguments(verbs)
write(${OUT}/man1/isonorm.1 man)
foreach(verb IN LISTS verbs)
  write(${OUT}/man1/isonorm-${verb}.1 man ${verb})
endforeach()
if(GZIP)
  file(GLOB pages ${OUT}/man1/*)
  execute_process(COMMAND ${GZIP} -9n ${pages} COMMAND_ERROR_IS_FATAL ANY)
endif()
