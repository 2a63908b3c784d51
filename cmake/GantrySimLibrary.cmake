# The simulated driver's libraries load into other people's programs: glibc symbols up to 2.17 only, no
# libstdc++, no sanitizers, nothing exported but what the vendor exports.

set(GANTRY_SIM_OUTPUT ${CMAKE_BINARY_DIR}/lib/gantry/sim)

add_library(gantry_sim_flags INTERFACE)
target_include_directories(gantry_sim_flags INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR})
target_compile_options(gantry_sim_flags INTERFACE
  -O2 -g1 -Wall -Wextra -Wpedantic -Wshadow -Wconversion $<$<BOOL:${GANTRY_WERROR}>:-Werror>
  -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections
  -fstack-protector-strong -D_FORTIFY_SOURCE=2 -Wformat -Werror=format-security
  $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti -fno-threadsafe-statics -fvisibility-inlines-hidden>)

# Compiled into each of them: the image at the end of the file, device nodes, faults.
file(GLOB GANTRY_SIM_SHARED_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/sim/driver/*.cpp)
list(FILTER GANTRY_SIM_SHARED_SOURCES EXCLUDE REGEX "_test\\.cpp$")
# Those of them that `gantry` needs, too.
set(GANTRY_SIM_MACHINE_SOURCES gpu_schedule.cpp gpu_time.cpp gpu_time_file.cpp library_check.cpp usage.cpp usage_pid.cpp)

# A test that the target loads where glibc is 2.17.
function(gantry_sim_floor_test target)
  if(GANTRY_TESTS)
    add_test(NAME glibc_floor_${target}
      COMMAND ${CMAKE_SOURCE_DIR}/tools/check_glibc_floor.py $<TARGET_FILE:${target}> 2.17 --no-libstdc++)
    set_tests_properties(glibc_floor_${target} PROPERTIES LABELS unit)
  endif()
endfunction()

# gantry_sim_library(TARGET FILE libx.so SONAME libx.so.1 EXPORTS "nvml*;..." SOURCES ...)
#   Builds lib/gantry/sim/FILE, which `gantry sim create` copies and appends a machine to.
function(gantry_sim_library target)
  cmake_parse_arguments(L "" "FILE;SONAME" "SOURCES;EXPORTS" ${ARGN})
  set(map ${CMAKE_CURRENT_BINARY_DIR}/${target}.map)
  list(JOIN L_EXPORTS ";\n    " names)
  file(CONFIGURE OUTPUT ${map} CONTENT "{\n  global:\n    @names@;\n  local:\n    *;\n};\n" @ONLY)
  add_library(${target} SHARED ${L_SOURCES} ${GANTRY_SIM_SHARED_SOURCES})
  target_link_libraries(${target} PRIVATE gantry_sim_flags)
  gantry_unity(${target})
  # Linked as C, so that libstdc++ stays out; -z defs makes a forgotten need an error here.
  target_link_options(${target} PRIVATE
    -static-libgcc -Wl,-soname,${L_SONAME} -Wl,--version-script=${map}
    -Wl,-z,defs -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,--gc-sections -Wl,--hash-style=both)
  get_filename_component(name ${L_FILE} NAME_WE)
  set_target_properties(${target} PROPERTIES
    LINKER_LANGUAGE C PREFIX "" OUTPUT_NAME ${name} NO_SONAME ON LINK_DEPENDS ${map}
    LIBRARY_OUTPUT_DIRECTORY ${GANTRY_SIM_OUTPUT})
  install(FILES ${GANTRY_SIM_OUTPUT}/${L_FILE} DESTINATION lib/gantry/sim)
  gantry_sim_floor_test(${target})
endfunction()
