# Compares our C headers of the vendor's interfaces with the vendor's own, where those are present.
set(GANTRY_VENDOR_INCLUDE "" CACHE PATH "A directory with the vendor's cuda.h or nvml.h to compare with")
foreach(header cuda nvml)
  string(TOUPPER ${header} upper)
  find_file(GANTRY_VENDOR_${upper}_H ${header}.h
    PATHS ${GANTRY_VENDOR_INCLUDE} /usr/local/cuda/include /usr/include NO_DEFAULT_PATH)
endforeach()

if(GANTRY_TESTS AND GANTRY_VENDOR_CUDA_H)
  get_filename_component(directory ${GANTRY_VENDOR_CUDA_H} DIRECTORY)
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/cuda_facts_vendor.cpp PROPERTIES
    COMPILE_DEFINITIONS GANTRY_VENDOR_CUDA_H="${GANTRY_VENDOR_CUDA_H}"
    COMPILE_OPTIONS "-isystem${directory}")
endif()

if(GANTRY_TESTS AND GANTRY_VENDOR_NVML_H)
  include(VendorNvml)
  vendor_nvml_lists(${GANTRY_VENDOR_NVML_H} ${CMAKE_CURRENT_BINARY_DIR} ${CMAKE_CURRENT_LIST_DIR})
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/nvml_facts_vendor.cpp PROPERTIES
    COMPILE_DEFINITIONS GANTRY_VENDOR_NVML_H="${GANTRY_VENDOR_NVML_H}"
    COMPILE_OPTIONS "-I${CMAKE_CURRENT_BINARY_DIR};-Wno-deprecated-declarations")
endif()
