// SPDX-License-Identifier: Apache-2.0
// What somebody asked for: a driver, where it comes from, and what may be done for it.
#pragma once

#include "install/preflight/driver_branches.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::preflight {

enum class Source : std::uint8_t {
  Run,              // NVIDIA's installer archive: local, by URL or from a mirror
  Packages,         // of the distribution: apt, dnf, zypper
  Precompiled,      // modules that were built, and signed, elsewhere
  NvidiaContainer,  // NVIDIA's driver container, as gpu-operator runs it
  Grid              // the guest driver of NVIDIA AI Enterprise and of vGPUs
};
std::string_view to_string(Source source);  // "run", "packages", "precompiled", ...
std::optional<Source> parse_source(std::string_view text);

inline constexpr std::string_view kDefaultDirectory = "/usr/local/nvidia";
inline constexpr std::string_view kWorkDirectory = "/var/lib/gantry/driver-install";

struct DriverRequest {
  std::string version;             // "580.159.04", or a branch for packages: "580"
  std::optional<Flavour> flavour;  // nullopt: what suits the GPUs
  Source source = Source::Run;

  // At most one of run_file and url. Without either, the archive of this version comes from the
  // mirror.
  std::string run_file;  // on the machine
  std::string url;
  std::string mirror;  // a base URL instead of NVIDIA's
  std::string sha256;  // of the archive
  bool trust_download_without_digest = false;

  // Packages: keys that may sign a vendor's repository, as fingerprints or as files on the machine.
  std::vector<std::string> repository_keys;
  bool trust_repository_key = false;  // the one that the repository serves, unchecked

  std::string directory = std::string(kDefaultDirectory);
  std::string kernel;  // the release to build for; "": the running one

  std::string patch;           // applied to the source of the modules
  std::string modules;         // directory with modules that were built elsewhere (Precompiled)
  std::string modules_sha256;  // of the list of their digests; "": not pinned
  bool trust_modules_without_digest = false;
  std::string sign_key;          // private key; a path or a PKCS#11 URI
  std::string sign_certificate;  // that the kernel trusts

  bool drain = false;      // wait until the processes that use GPUs have ended
  bool terminate = false;  // with drain: send them SIGTERM. Processes of pods are never signalled
  unsigned drain_seconds = 300;

  std::string gridd_conf;    // Grid: licence configuration to place
  std::string client_token;  // Grid: token to place

  // As nvidia-driver-installer, Google's name: with its cache file in the directory, and with its
  // variables in place of options where a remedy names one.
  bool as_google = false;

  std::vector<std::string> ignore;  // codes of findings that shall warn instead of block

  // Returns true if the modules are compiled on this machine, with its headers and its compiler.
  bool builds_modules() const;
  // Returns true if files come over the network.
  bool downloads() const;
};

// The version that is asked for, or the one in the name of the archive; "" if neither says one.
std::string version_of(const DriverRequest& request);

}  // namespace gantry::preflight
