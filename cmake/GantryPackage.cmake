# .deb, .rpm and a relocatable tar, from one set of install() rules. `make package` puts them into build/packages.

install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/InstallUnits.cmake)
install(FILES ${CMAKE_SOURCE_DIR}/docs/man/gantry-runtime.8 DESTINATION share/man/man8)
install(FILES ${CMAKE_SOURCE_DIR}/docs/man/gantry-driver.1 ${CMAKE_SOURCE_DIR}/docs/man/gantry-inspect.1 ${CMAKE_SOURCE_DIR}/docs/man/gantry-mig.1 ${CMAKE_SOURCE_DIR}/docs/man/gantry-share.1 ${CMAKE_SOURCE_DIR}/docs/man/gantry-vfio.1 ${CMAKE_SOURCE_DIR}/docs/man/gantry-vm.1 ${CMAKE_SOURCE_DIR}/docs/man/gantry-vgpu.1 ${CMAKE_SOURCE_DIR}/docs/man/gantry-trainer.1 ${CMAKE_SOURCE_DIR}/docs/man/gantry-notebook.1 DESTINATION share/man/man1)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION share/doc/gantry RENAME copyright)

# The packages whose jobs and file names gantry takes over.
set(replaced nvidia-container-toolkit nvidia-container-toolkit-base nvidia-container-toolkit-operator-extensions
  nvidia-container-runtime nvidia-container-runtime-hook libnvidia-container-tools nvidia-docker2)
# libnvidia-container1 has a shared library, which we do not ship: it may stay installed for a program that is linked with it.
foreach(name ${replaced} libnvidia-container1)
  list(APPEND provided_deb "${name} (= 1.20.0)")  # the version whose contracts we keep
  list(APPEND provided_rpm "${name} = 1.20.0")
endforeach()
list(JOIN replaced " " replaced_names)
list(JOIN replaced ", " replaced)
list(JOIN provided_deb ", " provided_deb)
list(JOIN provided_rpm ", " provided_rpm)

set(CPACK_PACKAGE_NAME gantry)
set(CPACK_PACKAGE_VENDOR "The Gantry authors")
set(CPACK_PACKAGE_CONTACT "The Gantry authors <gantry@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "NVIDIA GPUs in containers, pods and virtual machines")
set(CPACK_PACKAGE_DESCRIPTION
  "Finds the driver, writes CDI specs, configures docker, containerd, CRI-O and podman, and puts GPUs into containers in milliseconds.
Answers to nvidia-ctk, nvidia-container-cli, nvidia-container-runtime and its hook.")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB RPM TGZ)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/GantryPackageFormats.cmake)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
# Not dpkg-shlibdeps: it wants the glibc in which Debian last changed a function (2.34 for sysconf), not the one that has its symbol.
# The packages lane compares this with the programs.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= ${GANTRY_GLIBC_FLOOR})")
set(CPACK_DEBIAN_PACKAGE_PROVIDES "${provided_deb}")
set(CPACK_DEBIAN_PACKAGE_CONFLICTS "${replaced}")
set(CPACK_DEBIAN_PACKAGE_REPLACES "${replaced}")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "runc | crun")

set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_COMPRESSION_TYPE gzip)  # rpmbuild of some distributions uses zstd, which SLE 15 and RHEL 8 cannot read
set(CPACK_RPM_SPEC_MORE_DEFINE "%define _build_id_links none")
set(CPACK_RPM_PACKAGE_LICENSE Apache-2.0)
set(CPACK_RPM_PACKAGE_AUTOREQ " yes")
set(CPACK_RPM_PACKAGE_AUTOPROV " no")
set(CPACK_RPM_PACKAGE_PROVIDES "${provided_rpm}")
set(CPACK_RPM_PACKAGE_CONFLICTS "${replaced}")
set(CPACK_RPM_PACKAGE_OBSOLETES "${replaced}")
# The scripts that need the names of the package's files are written when these are in place.
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/GantryPackageScripts.cmake)
set(CPACK_GANTRY_SCRIPTS ${CMAKE_SOURCE_DIR}/deploy/package)
set(CPACK_GANTRY_FILLED_SCRIPTS ${CMAKE_BINARY_DIR}/package)
set(CPACK_GANTRY_REPLACED_NAMES "${replaced_names}")
set(CPACK_RPM_PRE_INSTALL_SCRIPT_FILE ${CMAKE_BINARY_DIR}/package/rpm-pre)
set(CPACK_RPM_POST_INSTALL_SCRIPT_FILE ${CMAKE_SOURCE_DIR}/deploy/package/rpm-post)
set(CPACK_RPM_PRE_UNINSTALL_SCRIPT_FILE ${CMAKE_BINARY_DIR}/package/rpm-preun)
set(CPACK_RPM_POST_UNINSTALL_SCRIPT_FILE ${CMAKE_BINARY_DIR}/package/rpm-postun)
# Directories of the system, which the package shares and does not own.
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION
  /usr /usr/bin /usr/lib /usr/lib/systemd /usr/lib/systemd/system /usr/lib/udev /usr/lib/udev/rules.d
  /usr/share /usr/share/doc /usr/share/man /usr/share/man/man1 /usr/share/man/man8 /usr/share/bash-completion
  /usr/share/bash-completion/completions /usr/share/zsh)

configure_file(${CMAKE_SOURCE_DIR}/deploy/package/deb-postinst ${CMAKE_BINARY_DIR}/package/postinst COPYONLY
  FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
foreach(script preinst postinst prerm postrm)
  list(APPEND CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/package/${script})
endforeach()
include(CPack)
