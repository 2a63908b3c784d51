# The build in one place: flags, and gantry_module(), the only way to declare a module.

include(GNUInstallDirs)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
find_program(GANTRY_CCACHE ccache)
if(GANTRY_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${GANTRY_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${GANTRY_CCACHE})
endif()

add_library(gantry_flags INTERFACE)
# g++ 12 warns of members left out of a designated initialiser even where they have defaults.
target_compile_options(gantry_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-missing-field-initializers)
target_include_directories(gantry_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_definitions(gantry_flags INTERFACE GANTRY_VERSION="${PROJECT_VERSION}")
if(GANTRY_WERROR)
  target_compile_options(gantry_flags INTERFACE -Werror)
endif()
if(GANTRY_SANITIZE)
  target_compile_options(gantry_flags INTERFACE
    -fsanitize=${GANTRY_SANITIZE} -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(gantry_flags INTERFACE -fsanitize=${GANTRY_SANITIZE})
  # Programs with sanitizers and debug information have hundreds of megabytes: the usual linker takes a minute for
  # what mold does in seconds.
  find_program(GANTRY_MOLD mold)
  if(GANTRY_MOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_link_options(gantry_flags INTERFACE -fuse-ld=mold)
  endif()
endif()

# C++ libraries static, glibc dynamic. libgcc_s stays dynamic: its static form needs
# _dl_find_object of glibc 2.35, and our floor is 2.34.
add_library(gantry_program INTERFACE)
target_link_libraries(gantry_program INTERFACE gantry_flags)
if(NOT GANTRY_SANITIZE)
  target_link_options(gantry_program INTERFACE -static-libstdc++ -Wl,--gc-sections)
  target_sources(gantry_program INTERFACE ${CMAKE_SOURCE_DIR}/cmake/glibc_floor.cpp)
endif()

# fmt, yaml-cpp and nghttp2 as static archives, so that programs run on machines without them.
# Debian 12 has fmt as a shared library only; its headers hold the source.
find_library(GANTRY_FMT_ARCHIVE NAMES libfmt.a)
if(GANTRY_FMT_ARCHIVE)
  set(GANTRY_FMT ${GANTRY_FMT_ARCHIVE})
else()
  add_library(gantry_fmt STATIC ${CMAKE_SOURCE_DIR}/cmake/fmt_library.cpp)
  target_compile_options(gantry_fmt PRIVATE -ffunction-sections -fdata-sections)
  set(GANTRY_FMT gantry_fmt)
endif()
find_library(GANTRY_YAML NAMES libyaml-cpp.a yaml-cpp)
find_library(GANTRY_NGHTTP2 NAMES libnghttp2.a nghttp2)

if(GANTRY_TESTS)
  find_package(GTest)
  if(NOT GTest_FOUND)
    message(STATUS "GoogleTest not found: tests are not built")
    set(GANTRY_TESTS OFF)
  endif()
endif()

if(GANTRY_FUZZ)
  add_custom_target(fuzzers)  # all fuzz targets, and of the rest only what they need
endif()

# gantry_module(NAME SOURCES ... TESTS ... DEPS ... LIBS ... FUZZ ...)
#   DEPS  other modules it may include from; tools/check_layers.py compares them with the #includes
#   LIBS  third-party libraries
#   FUZZ  files foo_fuzz.cpp, one libFuzzer target each (preset fuzz)
function(gantry_module name)
  cmake_parse_arguments(M "" "" "SOURCES;TESTS;DEPS;LIBS;FUZZ" ${ARGN})
  list(TRANSFORM M_DEPS PREPEND gantry_ OUTPUT_VARIABLE deps)
  if(M_SOURCES)
    add_library(gantry_${name} STATIC ${M_SOURCES})
    target_link_libraries(gantry_${name} PUBLIC gantry_flags ${deps} ${M_LIBS})
    target_compile_options(gantry_${name} PRIVATE -ffunction-sections -fdata-sections)
  else()
    add_library(gantry_${name} INTERFACE)
    target_link_libraries(gantry_${name} INTERFACE gantry_flags ${deps} ${M_LIBS})
  endif()
  if(GANTRY_TESTS AND M_TESTS)
    add_executable(${name}_test ${M_TESTS})
    target_link_libraries(${name}_test PRIVATE gantry_${name} gantry_test_support GTest::gmock GTest::gtest_main)
    target_compile_definitions(${name}_test PRIVATE GANTRY_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    add_test(NAME ${name} COMMAND ${name}_test)
    set_tests_properties(${name} PROPERTIES LABELS unit SKIP_REGULAR_EXPRESSION "SKIPPED ALL")
  endif()
  # The targets are built by the fuzz preset (clang) and run briefly among the tests of the dev preset.
  foreach(source ${M_FUZZ})
    get_filename_component(target ${source} NAME_WE)
    if(GANTRY_FUZZ)
      add_executable(${target} ${source})
      target_link_libraries(${target} PRIVATE gantry_${name} -fsanitize=fuzzer)
      set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
      add_dependencies(fuzzers ${target})
    elseif(GANTRY_TESTS)
      add_test(NAME fuzz_${target}
        COMMAND ${CMAKE_SOURCE_DIR}/tools/fuzz ${CMAKE_SOURCE_DIR}/build/fuzz/bin/${target})
      set_tests_properties(fuzz_${target} PROPERTIES LABELS fuzz SKIP_RETURN_CODE 77)
    endif()
  endforeach()
endfunction()
