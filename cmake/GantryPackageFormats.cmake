# Read by cpack once per format: packages belong under /usr, the tar anywhere.
set(CPACK_SET_DESTDIR ON)
if(CPACK_GENERATOR STREQUAL "TGZ")
  set(CPACK_INSTALL_PREFIX "/")
else()
  set(CPACK_INSTALL_PREFIX "/usr")
endif()
