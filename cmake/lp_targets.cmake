# The few forms in which folders declare targets and tests.
include_guard()

# lp_library(lp_FOLDER SOURCES a.c b.c [LIBS lp_base ...]): the static library of a folder.
function(lp_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC lp_flags ${arg_LIBS})
endfunction()

# lp_check_test(NAME name SOURCES test_a.c ... [LIBS lp_base ...]): a Check program, run by ctest. Its tests register
# themselves; lp_suite holds main (tests/suite.h). It runs in the source root and finds the folder of its own files in
# LP_TEST_DIR.
function(lp_check_test)
  cmake_parse_arguments(arg "" "NAME" "SOURCES;LIBS" ${ARGN})
  add_executable(test_${arg_NAME} ${arg_SOURCES})
  target_compile_definitions(test_${arg_NAME} PRIVATE LP_TEST_DIR="${CMAKE_CURRENT_SOURCE_DIR}")
  target_link_libraries(test_${arg_NAME} PRIVATE lp_flags ${arg_LIBS} lp_suite)
  target_compile_options(test_${arg_NAME} PRIVATE $<$<CONFIG:Release>:-O1>) # a third less time to compile
  add_test(NAME ${arg_NAME} COMMAND test_${arg_NAME} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endfunction()

# lp_shell_test(name script.sh [argument ...]): a script that fails by its exit status. It runs in the source root with
# LP_SOURCE, LP_BUILD and, when tools/ is built, LLMPART (the command) in its environment; exit status 77 skips it.
# LLMPART_HOST has the figures of `host`, so that no test measures the machine, except those that unset it. LP_LEVEL is
# the level at which e2e/lib.sh compiles: -O0, which takes a seventh of the time, or the usual one (lp_optimised_tests).
function(lp_shell_test name script)
  cmake_path(ABSOLUTE_PATH script BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  add_test(NAME ${name} COMMAND sh ${script} ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set(environment LP_SOURCE=${PROJECT_SOURCE_DIR} LP_BUILD=${PROJECT_BINARY_DIR}
      LLMPART_HOST=${PROJECT_SOURCE_DIR}/tests/models/host.yaml LP_LEVEL=-O0)
  if(TARGET llmpart)
    list(APPEND environment LLMPART=$<TARGET_FILE:llmpart>)
  endif()
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "${environment}" TIMEOUT 1200 SKIP_RETURN_CODE 77)
endfunction()

# lp_long_tests(name ...): gives tests the label `long`: `sh tools/test.sh` leaves them out, `sh tools/test.sh --all`
# runs them.
function(lp_long_tests)
  set_property(TEST ${ARGN} APPEND PROPERTY LABELS long)
endfunction()

# lp_soak_tests(name ...): gives tests the label `soak`: only `sh tools/test.sh --all soak` runs them. They repeat what
# a quick or long test does, over more inputs.
function(lp_soak_tests)
  set_property(TEST ${ARGN} APPEND PROPERTY LABELS soak)
endfunction()

# lp_optimised_tests(name ...): the scripts are about optimised code, so that e2e/lib.sh compiles at the usual level.
function(lp_optimised_tests)
  set_property(TEST ${ARGN} APPEND PROPERTY ENVIRONMENT LP_LEVEL=) # the last entry holds
endfunction()

# lp_part_of_test(name part): declares NAME-PART, with the label PART, as the part of the declared test NAME that the
# variable LP_PART asks for. COMMAND... is NAME's own command.
function(lp_part_of_test name part)
  cmake_parse_arguments(arg "" "" "COMMAND" ${ARGN})
  add_test(NAME ${name}-${part} COMMAND ${arg_COMMAND} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  foreach(property ENVIRONMENT TIMEOUT SKIP_RETURN_CODE)
    get_property(value TEST ${name} PROPERTY ${property})
    if(NOT "${value}" STREQUAL "")
      set_property(TEST ${name}-${part} PROPERTY ${property} "${value}")
    endif()
  endforeach()
  set_property(TEST ${name}-${part} APPEND PROPERTY ENVIRONMENT LP_PART=${part}) # the last entry holds
  set_property(TEST ${name}-${part} APPEND PROPERTY LABELS ${part})
endfunction()

# lp_split_test(name part ...): splits the declared test NAME by the variable LP_PART, which the test reads: NAME runs
# the part `quick`, and NAME-PART each of these parts, `long` or `soak`. COMMAND... is NAME's own command.
function(lp_split_test name)
  cmake_parse_arguments(arg "" "" "COMMAND" ${ARGN})
  foreach(part ${arg_UNPARSED_ARGUMENTS})
    lp_part_of_test(${name} ${part} COMMAND ${arg_COMMAND})
  endforeach()
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT LP_PART=quick)
endfunction()

# lp_split_shell_test(name [SOAK] script.sh [argument ...]): lp_shell_test as a quick and a long test, and one of the
# soak.
function(lp_split_shell_test name)
  cmake_parse_arguments(arg "SOAK" "" "" ${ARGN})
  list(POP_FRONT arg_UNPARSED_ARGUMENTS script)
  cmake_path(ABSOLUTE_PATH script BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  lp_shell_test(${name} ${script} ${arg_UNPARSED_ARGUMENTS})
  set(parts long)
  if(arg_SOAK)
    list(APPEND parts soak)
  endif()
  lp_split_test(${name} ${parts} COMMAND sh ${script} ${arg_UNPARSED_ARGUMENTS})
endfunction()

# lp_long_shell_test(name script.sh [argument ...]): lp_shell_test as the long test NAME, which runs the parts `quick`
# and `long`, and NAME-soak.
function(lp_long_shell_test name script)
  cmake_path(ABSOLUTE_PATH script BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  lp_shell_test(${name} ${script} ${ARGN})
  lp_part_of_test(${name} soak COMMAND sh ${script} ${ARGN})
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "LP_PART=quick long")
  lp_long_tests(${name})
endfunction()

# lp_skipped_test(name reason): stands for a test that cannot run here, so that the list of skipped tests names it.
function(lp_skipped_test name reason)
  add_test(NAME ${name} COMMAND sh -c "echo 'skipped: ${reason}'; exit 77")
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()

# lp_fuzzer(name SOURCES fuzz.c ... [LIBS lp_ir ...]): the libFuzzer program fuzz_NAME; nothing unless LP_FUZZ.
function(lp_fuzzer name)
  if(LP_FUZZ)
    cmake_parse_arguments(arg "" "" "SOURCES;LIBS" ${ARGN})
    add_executable(fuzz_${name} ${arg_SOURCES})
    target_link_libraries(fuzz_${name} PRIVATE lp_flags ${arg_LIBS})
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  endif()
endfunction()

# lp_embed_text(out FILE NAME): a source with the text of FILE as the C string NAME. Appends its path to the list `out`.
function(lp_embed_text out file name)
  cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.c)
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${file} -DNAME=${name} -DOUTPUT=${source} -P ${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake
    DEPENDS ${file} ${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake
    VERBATIM)
  list(APPEND ${out} ${source})
  set(${out} ${${out}} PARENT_SCOPE)
endfunction()

# lp_embed_yaml(out "FOLDER=TABLE[+NAME]..."): a source with the YAML files of folders of this directory as tables
# (base/yaml/yaml.h), so that an installed binary needs no files. Puts its path into the variable `out`.
function(lp_embed_yaml out)
  set(embedded ${CMAKE_CURRENT_BINARY_DIR}/embedded.c)
  set(files "")
  foreach(spec ${ARGN})
    string(REGEX REPLACE "=.*" "" folder "${spec}")
    file(GLOB found CONFIGURE_DEPENDS ${folder}/*.yaml)
    list(APPEND files ${found})
  endforeach()
  list(JOIN ARGN " " tables)
  add_custom_command(
    OUTPUT ${embedded}
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_CURRENT_SOURCE_DIR} -DOUT=${embedded} -DTABLES=${tables}
            -P ${PROJECT_SOURCE_DIR}/cmake/embed_yaml.cmake
    DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/embed_yaml.cmake
    VERBATIM)
  set(${out} ${embedded} PARENT_SCOPE)
endfunction()
