// SPDX-License-Identifier: Apache-2.0
// What Gantry has installed on a machine: installed.json, replaced as a whole when an installation
// has been verified.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "install/preflight/driver_branches.hpp"
#include "install/preflight/request.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::driver_setup {

// A file as it was when its digest was computed, so that it need not be read again.
struct FileStamp {
  std::string path;
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
  bool operator==(const FileStamp&) const = default;
};

// A command, or a file to write, that takes packages back.
struct RemovalStep {
  std::vector<std::string> argv;
  std::string file{};
  std::string content{};
  // To name behind argv, those that are installed then; nothing is done if none is.
  std::vector<std::string> packages{};
  std::string list{};  // nothing is done if this file does not exist
  std::string key{};   // fingerprint of the key in rpm's database whose name goes behind argv
  bool operator==(const RemovalStep&) const = default;
};

struct InstallRecord {
  preflight::Source source = preflight::Source::Run;
  std::string version;  // "580.159.04"
  std::optional<preflight::Flavour> flavour;
  std::string digest;        // sha256 of the archive; "" for packages
  std::string patch_digest;  // "" without a patch
  std::string url;           // where it came from
  FileStamp archive;         // a local file; path "" if there was none
  std::string directory = std::string(preflight::kDefaultDirectory);
  std::string name;      // of its directory below DIR/.versions; "" for packages
  std::string previous;  // of the version before it, which is kept; "" if there is none

  // Paths outside DIR/.versions that did not exist before, each after the directories that it is
  // in.
  std::vector<std::string> created;
  std::vector<std::string>
      moved_aside;                      // directories of Google's installer, now NAME.before-gantry
  bool added_to_loader_config = false;  // a line of /etc/ld.so.conf
  bool set_firmware_path = false;
  std::string firmware_path_before;
  bool made_cdi = false;                       // there was no CDI specification before
  std::vector<RemovalStep> removal;            // packages
  std::vector<std::string> packages{};         // that were asked for: "nvidia-smi 535.183.01-1"
  std::vector<std::string> repository_keys{};  // --repository-key
  // Modules of the kernel itself that were loaded for the driver's: "drm", "video".
  std::vector<std::string> kernel_modules{};
  bool operator==(const InstallRecord&) const = default;

  bool has_files() const { return !name.empty(); }
};

// "580.159.04 (open)"
std::string describe(const InstallRecord& record);

// The command that installs it again: "sudo gantry driver install --run FILE --sha256 HEX".
std::string install_command(const InstallRecord& record);

std::string to_json(const InstallRecord& record);
// Corrupt if it is not what to_json writes. Bounded; accepts any bytes.
Result<InstallRecord> parse_record(std::string text);

// nullopt if nothing is installed. Corrupt, with a remedy, if the file cannot be understood: what
// is installed must not be guessed.
Result<std::optional<InstallRecord>> read_record(const sys::Host& host);

}  // namespace gantry::driver_setup
