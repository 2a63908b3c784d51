# Read by cpack once per format: packages belong under /usr, the tar anywhere.
if(CPACK_GENERATOR STREQUAL "TGZ")
  set(CPACK_PACKAGING_INSTALL_PREFIX "/")
else()
  set(CPACK_PACKAGING_INSTALL_PREFIX "/usr")
endif()
