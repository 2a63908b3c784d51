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
  # One cache for all checkouts: paths below the checkout are hashed as relative ones. A precompiled header is known by the
  # .sum file beside it (gantry_precompile), because its own bytes differ from build to build.
  set(launcher env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${GANTRY_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

add_library(gantry_flags INTERFACE)
# g++ 12 warns of members left out of a designated initialiser even where they have defaults.
target_compile_options(gantry_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-missing-field-initializers)
target_include_directories(gantry_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
# Where a file keeps its path (__FILE__, debug information), the path is relative to the source tree: the same file in two
# checkouts is then the same to ccache.
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -ffile-prefix-map=${CMAKE_BINARY_DIR}=build)
target_compile_definitions(gantry_flags INTERFACE GANTRY_VERSION="${PROJECT_VERSION}")
if(GANTRY_WERROR)
  target_compile_options(gantry_flags INTERFACE -Werror)
endif()
# What Debian's own packages are hardened with (dpkg-buildflags, hardening=+all; PIE is the compiler's default). Only where it
# is optimised: FORTIFY needs that, and the sanitizers check more. tools/check_hardening.py, a test, looks into the programs.
add_library(gantry_hardening INTERFACE)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_options(gantry_hardening INTERFACE -fstack-protector-strong -Wformat -Werror=format-security)
  target_compile_definitions(gantry_hardening INTERFACE _FORTIFY_SOURCE=2)
  target_link_options(gantry_hardening INTERFACE -Wl,-z,relro -Wl,-z,now)
  target_link_libraries(gantry_flags INTERFACE gantry_hardening)
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

# Static: no loader and no library is needed. The sanitizers cannot be linked statically, so the dev preset links dynamically.
add_library(gantry_static_program INTERFACE)
target_link_libraries(gantry_static_program INTERFACE gantry_flags)
if(NOT GANTRY_SANITIZE)
  target_link_options(gantry_static_program INTERFACE -static-pie -Wl,--gc-sections)
  target_sources(gantry_static_program INTERFACE ${CMAKE_SOURCE_DIR}/cmake/static_program.c)
endif()

# Programs that load NVIDIA's libraries, which need glibc as a shared library: everything else is static. cmake/glibc_floor.c
# stands in for what glibc has only since later versions. Up to 2.33, dlopen and threads are in libraries of their own.
set(GANTRY_GLIBC_FLOOR 2.17)
add_library(gantry_loading_program INTERFACE)
target_link_libraries(gantry_loading_program INTERFACE gantry_flags)
if(NOT GANTRY_SANITIZE)
  target_link_options(gantry_loading_program INTERFACE -static-libstdc++ -static-libgcc -Wl,--gc-sections)
  target_link_libraries(gantry_loading_program INTERFACE
    -Wl,--push-state,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0 -Wl,--pop-state)
  target_sources(gantry_loading_program INTERFACE ${CMAKE_SOURCE_DIR}/cmake/glibc_floor.c)
endif()

# fmt, yaml-cpp, nghttp2, expat and zlib as static archives, so that programs run on machines without them.
# Debian 12 has fmt as a shared library only; its headers hold the source.
find_library(GANTRY_FMT_ARCHIVE NAMES libfmt.a)
if(GANTRY_FMT_ARCHIVE)
  set(GANTRY_FMT ${GANTRY_FMT_ARCHIVE})
else()
  add_library(gantry_fmt STATIC ${CMAKE_SOURCE_DIR}/cmake/fmt_library.cpp)
  target_compile_options(gantry_fmt PRIVATE -ffunction-sections -fdata-sections)
  target_link_libraries(gantry_fmt PRIVATE gantry_hardening)
  set(GANTRY_FMT gantry_fmt)
endif()
find_library(GANTRY_YAML NAMES libyaml-cpp.a yaml-cpp)
find_library(GANTRY_NGHTTP2 NAMES libnghttp2.a nghttp2)
find_library(GANTRY_EXPAT NAMES libexpat.a expat)
find_library(GANTRY_ZLIB NAMES libz.a z)

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

# A module is a folder AREA/NAME of src/. Its files say by their names what they are:
#   x.cpp            the module's own code
#   x_test.cpp, x_for_test.cpp   tests and what they share; all tests of an area are one program (gantry_area_test)
#   x_fuzz.cpp       a libFuzzer target (preset fuzz)
#   x_program_for_test.cpp, x_tsan.cpp   programs of their own, declared by hand
#
# gantry_module(NAME [FOLDER sub/folder] [TESTS_ONLY] DEPS ... LIBS ... SOURCES ...
#               TEST_LIBS ... TEST_NEEDS ...)
#   DEPS     other modules it may include from; tools/check_layers.py compares them with the #includes
#   LIBS     third-party libraries
#   SOURCES  generated files
#   TEST_*   further libraries of its tests, and targets that they start
function(gantry_module name)
  cmake_parse_arguments(M "TESTS_ONLY" "FOLDER" "SOURCES;DEPS;LIBS;TEST_LIBS;TEST_NEEDS" ${ARGN})
  if(NOT M_FOLDER)
    set(M_FOLDER ${name})
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${M_FOLDER}/*.cpp)
  file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${M_FOLDER}/*_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/${M_FOLDER}/*_test.c ${CMAKE_CURRENT_SOURCE_DIR}/${M_FOLDER}/*_for_test.cpp)
  file(GLOB fuzzers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${M_FOLDER}/*_fuzz.cpp)
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz|tsan)\\.cpp$")
  list(FILTER tests EXCLUDE REGEX "_program_for_test\\.cpp$")
  if(M_TESTS_ONLY)
    list(APPEND tests ${sources})
    list(REMOVE_DUPLICATES tests)
    set(sources "")
  endif()
  list(APPEND sources ${M_SOURCES})
  list(TRANSFORM M_DEPS PREPEND gantry_ OUTPUT_VARIABLE deps)
  if(sources)
    add_library(gantry_${name} STATIC ${sources})
    target_link_libraries(gantry_${name} PUBLIC gantry_flags ${deps} ${M_LIBS})
    gantry_join(gantry_${name})
  else()
    add_library(gantry_${name} INTERFACE)
    target_link_libraries(gantry_${name} INTERFACE gantry_flags ${deps} ${M_LIBS})
  endif()
  if(GANTRY_TESTS AND tests)
    set_property(DIRECTORY APPEND PROPERTY GANTRY_TEST_MODULES ${name}=${M_FOLDER})
    set_property(DIRECTORY APPEND PROPERTY GANTRY_TEST_SOURCES ${tests})
    gantry_test_extra(LIBS gantry_${name} ${M_TEST_LIBS} NEEDS ${M_TEST_NEEDS})
  endif()
  # The targets are built by the fuzz preset (clang) and run briefly among the tests of the dev preset.
  foreach(source ${fuzzers})
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

# Compiles a target's files together, GANTRY_UNITY of them at a time: the headers that they share are read once.
function(gantry_unity target)
  if(GANTRY_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${GANTRY_UNITY})
    # A class of one .cpp with members of its anonymous namespace: only in a unity build it looks like a header's.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# Compiles a library's files together, with the precompiled common headers.
function(gantry_join target)
  target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections)
  gantry_unity(${target})
  gantry_reuse_headers(${target} common)
endfunction()

set(GANTRY_TEST_PROGRAMS ${CMAKE_BINARY_DIR}/test-programs)  # started or loaded by tests

# Adds to the test program of this directory's area.
function(gantry_test_extra)
  cmake_parse_arguments(T "" "" "LIBS;NEEDS" ${ARGN})
  foreach(kind LIBS NEEDS)
    set_property(DIRECTORY APPEND PROPERTY GANTRY_TEST_${kind} ${T_${kind}})
  endforeach()
endfunction()

# Uses the precompiled headers KIND (common or cli) for a target's C++ files. They are compiled once for all targets, so the
# targets must be compiled with the same flags.
function(gantry_reuse_headers target kind)
  if(NOT GANTRY_UNITY)
    return()
  endif()
  if(NOT TARGET gantry_${kind}_headers)
    set(header ${CMAKE_SOURCE_DIR}/cmake/${kind}_headers.hpp)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/${kind}_headers.cpp CONTENT "")
    add_library(gantry_${kind}_headers STATIC ${CMAKE_BINARY_DIR}/generated/${kind}_headers.cpp)
    target_link_libraries(gantry_${kind}_headers PUBLIC gantry_flags)
    target_compile_options(gantry_${kind}_headers PRIVATE -ffunction-sections -fdata-sections)
    gantry_precompile(gantry_${kind}_headers ${header})
  endif()
  target_precompile_headers(${target} REUSE_FROM gantry_${kind}_headers)
endfunction()

# Precompiles a header for a target's C++ files, except where each file is compiled alone.
function(gantry_precompile target header)
  if(NOT GANTRY_UNITY)
    return()
  endif()
  target_precompile_headers(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${header}>)
  file(SHA256 ${header} content)
  string(SHA256 sum "${content} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE} ${GANTRY_SANITIZE} ${GTest_VERSION}")
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir)
  foreach(suffix gch pch)  # g++'s name of the precompiled header, and clang's
    file(WRITE ${folder}/cmake_pch.hxx.${suffix}.sum "${sum}\n")
  endforeach()
endfunction()

# Compiles the C++ files of a test program together, with the headers that all tests use. These are precompiled once for all test
# programs, so the programs must be compiled with the same flags.
function(gantry_join_tests target)
  if(NOT GANTRY_UNITY)
    return()
  endif()
  if(NOT TARGET gantry_test_headers)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/test_headers.cpp CONTENT "int main() {}\n")
    add_executable(gantry_test_headers EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/generated/test_headers.cpp)
    target_link_libraries(gantry_test_headers PRIVATE gantry_flags GTest::gmock GTest::gtest)
    gantry_precompile(gantry_test_headers ${CMAKE_SOURCE_DIR}/tests/support/test_headers.hpp)
  endif()
  target_precompile_headers(${target} REUSE_FROM gantry_test_headers)
  gantry_unity(${target})
  # A C file stands in for a foreign library, or is there to show that a header compiles as C: each is compiled alone.
  get_target_property(c_sources ${target} SOURCES)
  list(FILTER c_sources INCLUDE REGEX "\\.c$")
  set_source_files_properties(${c_sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# gantry_area_test(AREA): one program AREA_test with the tests of all modules of this directory, and a test for each module.
function(gantry_area_test area)
  get_property(sources DIRECTORY PROPERTY GANTRY_TEST_SOURCES)
  if(NOT GANTRY_TESTS OR NOT sources)
    return()
  endif()
  foreach(kind MODULES LIBS NEEDS)
    get_property(${kind} DIRECTORY PROPERTY GANTRY_TEST_${kind})
    list(REMOVE_DUPLICATES ${kind})
  endforeach()
  add_executable(${area}_test ${sources})
  target_link_libraries(${area}_test PRIVATE ${LIBS} gantry_test_main gantry_test_support GTest::gmock GTest::gtest)
  gantry_join_tests(${area}_test)
  if(NEEDS)
    add_dependencies(${area}_test ${NEEDS})
  endif()
  foreach(module ${MODULES})
    string(REGEX MATCH "^([^=]+)=(.+)$" _ ${module})
    add_test(NAME ${CMAKE_MATCH_1} COMMAND ${area}_test --folder=${CMAKE_MATCH_2})
    set_tests_properties(${CMAKE_MATCH_1} PROPERTIES LABELS unit SKIP_REGULAR_EXPRESSION "SKIPPED ALL")
  endforeach()
endfunction()
