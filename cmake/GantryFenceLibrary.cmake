# The fence's libraries stand in front of the driver's inside other people's programs: glibc symbols up to 2.17 only, no
# libstdc++, no sanitizers, never unloaded, and nothing exported but the hooks.

# No stack protector: three checks would be added to each launch, whose cost is measured in nanoseconds (docs/measured/fence.md),
# and the fence runs in the tenant's own process with the tenant's rights, so that there is no boundary to protect.

set(GANTRY_FENCE_OUTPUT ${CMAKE_BINARY_DIR}/lib)

add_library(gantry_fence_flags INTERFACE)
target_include_directories(gantry_fence_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(gantry_fence_flags INTERFACE
  -O2 -g1 -Wall -Wextra -Wpedantic -Wshadow -Wconversion $<$<BOOL:${GANTRY_WERROR}>:-Werror>
  -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections
  -fno-stack-protector -D_FORTIFY_SOURCE=2 -Wformat -Werror=format-security
  $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti -fno-threadsafe-statics -fvisibility-inlines-hidden>)

# gantry_fence_library(TARGET FILE libx.so SONAME libx.so.1 NEEDS /path/of/the/real/one EXPORTS "cu*;..." SOURCES ...)
#   Builds lib/FILE, which needs the driver's own library by that path and no other name: a small stand-in with this
#   SONAME is what it is linked with. -Bsymbolic: its table of hooks means its own functions, whatever came first.
function(gantry_fence_library target)
  cmake_parse_arguments(L "" "FILE;SONAME;NEEDS" "SOURCES;EXPORTS" ${ARGN})
  set(map ${CMAKE_CURRENT_BINARY_DIR}/${target}.map)
  list(JOIN L_EXPORTS ";\n    " names)
  file(CONFIGURE OUTPUT ${map} CONTENT "{\n  global:\n    @names@;\n  local:\n    *;\n};\n" @ONLY)
  set(empty ${CMAKE_CURRENT_BINARY_DIR}/${target}_real.c)
  file(CONFIGURE OUTPUT ${empty} CONTENT "typedef int gantry_nothing;\n" @ONLY)
  add_library(${target}_real SHARED ${empty})
  set_target_properties(${target}_real PROPERTIES NO_SONAME ON LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  target_link_options(${target}_real PRIVATE -nostdlib -Wl,-soname,${L_NEEDS})

  add_library(${target} SHARED ${L_SOURCES})
  target_link_libraries(${target} PRIVATE gantry_fence_flags)
  # Linked as C, so that libstdc++ stays out; -z defs makes a forgotten need an error here.
  target_link_options(${target} PRIVATE
    -static-libgcc -Wl,-soname,${L_SONAME} -Wl,--version-script=${map}
    -Wl,--push-state,--no-as-needed $<TARGET_FILE:${target}_real> -Wl,--pop-state
    -Wl,-Bsymbolic -Wl,-z,nodelete -Wl,-z,defs -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack
    -Wl,--gc-sections -Wl,--hash-style=both)
  get_filename_component(name ${L_FILE} NAME_WE)
  set_target_properties(${target} PROPERTIES
    LINKER_LANGUAGE C PREFIX "" OUTPUT_NAME ${name} NO_SONAME ON
    LIBRARY_OUTPUT_DIRECTORY ${GANTRY_FENCE_OUTPUT} BUILD_RPATH "" SKIP_BUILD_RPATH ON)
  set_target_properties(${target} PROPERTIES LINK_DEPENDS "${map};$<TARGET_FILE:${target}_real>")
  add_dependencies(${target} ${target}_real)
  install(FILES ${GANTRY_FENCE_OUTPUT}/${L_FILE} DESTINATION lib/gantry)
  if(GANTRY_TESTS)
    add_test(NAME glibc_floor_${target}
      COMMAND ${CMAKE_SOURCE_DIR}/tools/check_glibc_floor.py $<TARGET_FILE:${target}> 2.17 --no-libstdc++)
    set_tests_properties(glibc_floor_${target} PROPERTIES LABELS unit)
  endif()
endfunction()
