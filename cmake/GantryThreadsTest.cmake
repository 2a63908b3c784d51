# gantry_threads_test(NAME SOURCES ... MODULES ... LIBS ...): a test with the thread sanitizer, in every preset. The other
# sanitizers and it exclude each other, so all of ours that it runs is built once more: SOURCES here, and MODULES, whose code
# is shared by all such tests.
#   MODULES  in link order: users before what they use
set(GANTRY_THREADS_OPTIONS -O1 -g -fsanitize=thread -Wall -Wextra -Wshadow -Wconversion -Wno-missing-field-initializers)

function(gantry_threads_module name)
  if(TARGET gantry_${name}_threads)
    return()
  endif()
  get_target_property(sources gantry_${name} SOURCES)
  add_library(gantry_${name}_threads STATIC EXCLUDE_FROM_ALL ${sources})
  target_include_directories(gantry_${name}_threads PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_compile_options(gantry_${name}_threads PRIVATE ${GANTRY_THREADS_OPTIONS} -ffunction-sections -fdata-sections)
  target_compile_definitions(gantry_${name}_threads PRIVATE GANTRY_VERSION="${PROJECT_VERSION}")
  gantry_unity(gantry_${name}_threads)
endfunction()

function(gantry_threads_test name)
  cmake_parse_arguments(T "" "" "SOURCES;MODULES;LIBS" ${ARGN})
  foreach(module ${T_MODULES})
    gantry_threads_module(${module})
  endforeach()
  list(TRANSFORM T_MODULES REPLACE "^(.+)$" "gantry_\\1_threads" OUTPUT_VARIABLE modules)
  add_executable(${name}_test ${T_SOURCES})
  target_include_directories(${name}_test PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_compile_options(${name}_test PRIVATE ${GANTRY_THREADS_OPTIONS})
  # What a joined file has and the test does not call needs modules that are not built here.
  target_link_options(${name}_test PRIVATE -fsanitize=thread -Wl,--gc-sections)
  target_link_libraries(${name}_test PRIVATE ${modules} ${T_LIBS} GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name}_test)
  set_tests_properties(${name} PROPERTIES LABELS unit)
endfunction()
