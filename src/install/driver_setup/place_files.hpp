// SPDX-License-Identifier: Apache-2.0
// Which files of an unpacked archive become part of a version, and where. NVIDIA's own installer
// would put them all over /usr; here they stay together, so that one link switches them.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "install/driver_package/manifest.hpp"
#include "install/driver_setup/install_effects.hpp"
#include "install/preflight/driver_branches.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::driver_setup {

// A file or link of a version, relative to its directory: "lib64/libcuda.so.580.159.04".
struct PlacedFile {
  std::string path;
  std::string from{};  // relative to the unpacked archive; "" for a link
  std::string link{};  // its target; "" for a file
  unsigned mode = 0644;
  std::uint64_t bytes = 0;
  bool operator==(const PlacedFile&) const = default;
};

// Where one file of the manifest goes. nullopt: it is left out (documentation, X11, 32 bit,
// NVIDIA's installer, systemd's units).
std::optional<PlacedFile> placement_of(const driver_package::ManifestFile& file,
                                       std::string_view version, preflight::Flavour flavour);

// All of them, each path once.
std::vector<PlacedFile> plan_files(const driver_package::Manifest& manifest,
                                   preflight::Flavour flavour);

// Unsupported, with the other flavour, if the source of the modules is not among the files.
Status check_has_source(const std::vector<PlacedFile>& files, preflight::Flavour flavour);

// "kernel-open" or "kernel": the directory with the source of the modules in an archive of this
// branch. Before 515 there is only one.
std::string_view source_directory(preflight::Flavour flavour);

// The list of a directory's files, beside them: what must be there.
std::string to_json(const std::vector<PlacedFile>& files);
Result<std::vector<PlacedFile>> parse_file_list(std::string text);

// The first file of `list` that is missing or has another size; "" if all are right. NotFound if
// there is no list.
Result<std::string> find_damage(const sys::Host& host, const std::string& directory,
                                const std::string& list);

// Copies the files into `partial`, makes the links that the loader needs (sonames), writes the
// list, waits until all is on disk, and gives the directory its name.
Status place_files(const sys::Host& host, const std::vector<PlacedFile>& files,
                   const std::string& unpacked, const std::string& partial,
                   const std::string& directory, InstallEffects& effects);

}  // namespace gantry::driver_setup
