// SPDX-License-Identifier: Apache-2.0
// The shell script at the beginning of NVIDIA's .run files. They are made by NVIDIA's variant of
// makeself 1.6.0 ("1.6.0-nv" to "1.6.0-nv9"): settings of the form NAME=VALUE, one a line, then the
// script, then, since nv2, a program that unpacks, then the packed tar archive. `skip` is the
// number of the line at which the archive begins. CRCsum (POSIX cksum) and MD5 are of everything
// from the fourth line on; they notice damage and prove nothing about who made the file.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::driver_package {

enum class RunKind : std::uint8_t {
  Driver,       // NVIDIA-Linux-x86_64-580.159.04.run, also "-no-compat32"
  GuestDriver,  // "-grid", "-grid-aws": for virtual machines with vGPUs (AI Enterprise, GRID)
  VgpuHost,     // "-vgpu-kvm" and its like: for hosts that give vGPUs to virtual machines
};
std::string_view to_string(RunKind kind);  // "driver", "guest driver (GRID)", "vGPU host driver"

// What the name of a .run file or its target directory says.
struct RunName {
  std::string architecture;  // "x86_64", "aarch64", as uname -m has it
  std::string version;       // "580.159.04"
  RunKind kind = RunKind::Driver;
  bool operator==(const RunName&) const = default;
};
// Takes a path, with or without ".run". Invalid if it is not a name of NVIDIA's form.
Result<RunName> parse_run_name(std::string_view name);
// "NVIDIA-Linux-x86_64-580.159.04.run"
std::string run_file_name(const RunName& name);

// Digits with points: "430.26", "580.159.04". Everything that becomes part of a path or a URL is
// checked with it.
bool is_driver_version(std::string_view text);

struct RunHeader {
  std::string version;           // "580.159.04"
  std::string target_directory;  // "NVIDIA-Linux-x86_64-580.159.04"
  std::string label;             // "NVIDIA Accelerated Graphics Driver for Linux-x86_64 580.159.04"
  std::string architecture;      // "x86_64"
  RunKind kind = RunKind::Driver;
  std::string script;                // "./nvidia-installer"
  std::string maker;                 // "1.6.0-nv9"
  std::uint64_t payload_offset = 0;  // where the packed archive begins
  std::uint64_t payload_bytes = 0;
  std::uint64_t unpacked_bytes = 0;  // as the header says; 0 if it does not
  std::string compression;           // "xz", "zstd", "gzip", "bzip2", "lzma", "none"
  std::uint32_t crc = 0;
  std::string md5;  // "" if the file has none
  bool operator==(const RunHeader&) const = default;
};

// The header, the program that unpacks and the archive's first bytes are in these many bytes. The
// real ones end before 256 KiB.
inline constexpr std::size_t kRunPrefix = std::size_t{2} << 20;

// `prefix`: the file's first bytes, at most kRunPrefix. `file_bytes`: of the whole file. Invalid if
// it is not such a file, Corrupt if settings contradict each other or the file ends too early,
// Unsupported for an archive of an unknown form.
Result<RunHeader> parse_run_header(std::string_view prefix, std::uint64_t file_bytes);

Result<RunHeader> read_run_header(const sys::Host& host, const std::string& path);

// Reads the whole file and compares CRC and MD5. Corrupt, with what to do, if one differs.
Status check_run_file(const sys::Host& host, const std::string& path, const RunHeader& header);

}  // namespace gantry::driver_package
