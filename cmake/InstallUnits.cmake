# Runs when something is installed. Units and udev rules name programs by their full paths, which depend on the prefix. The
# tar has none: systemd reads the units of an unpacked tar only below /usr/local, so it is made for that place.
set(prefix "${CMAKE_INSTALL_PREFIX}")
if(prefix STREQUAL "")
  set(prefix /usr/local)
endif()

function(install_with_prefix destination)
  foreach(file IN LISTS ARGN)
    get_filename_component(name ${file} NAME)
    file(READ ${file} text)
    string(REPLACE /usr/bin/gantry ${prefix}/bin/gantry text "${text}")
    string(REPLACE /usr/bin/nvidia-ctk ${prefix}/bin/nvidia-ctk text "${text}")
    file(WRITE "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${destination}/${name}" "${text}")
  endforeach()
endfunction()

file(GLOB units ${CMAKE_CURRENT_LIST_DIR}/../deploy/systemd/gantry-*)
install_with_prefix(lib/systemd/system ${units})
install_with_prefix(lib/udev/rules.d ${CMAKE_CURRENT_LIST_DIR}/../deploy/udev/71-gantry.rules)
