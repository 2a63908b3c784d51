// SPDX-License-Identifier: Apache-2.0
// Downloads a .run file to the machine. What has arrived stays in NAME.part when the connection
// breaks, the program is killed or the power fails; the next call continues there if the server
// still has the same file, and begins again if not. NAME appears only when everything is there and
// the digest is right.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "install/driver_package/checksum.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::driver_package {

struct DownloadRequest {
  PinnedPackage package;
  std::string directory;    // on the host: "/var/lib/gantry/driver-install/downloads"
  std::string file_name{};  // "" = the last part of the URL
  // Where the digest was read, if that was a URL. A digest of the server that has the file does not
  // count as one.
  std::string digest_url{};
  bool trust_without_digest = false;  // --trust-download-without-digest
  bool checked_by_caller = false;     // what comes is known by something else than a digest
  std::string authorities{};          // PEM; "" = those of the system
  std::uint64_t limit_bytes = std::uint64_t{2} << 30;
  std::chrono::milliseconds stall{30'000};  // without a byte
  // In which at least 64 KiB must come: a server that sends a byte now and then keeps nobody.
  std::chrono::milliseconds slowest{120'000};
  std::chrono::milliseconds pause{1'000};  // before the next try; doubles each time
  int tries = 5;                           // in a row that bring nothing new
  int cancel = -1;                         // a descriptor that becomes readable to stop it
};

// Told what happens, from the thread that calls download().
class DownloadProgress {
 public:
  virtual ~DownloadProgress() = default;
  virtual void bytes(std::uint64_t /*done*/, std::uint64_t /*total, 0 = not known*/) {}
  // One sentence each: "the connection broke after 12 MiB of 300 MiB; trying again in 1 s".
  virtual void note(std::string_view /*sentence*/) {}
};

struct Downloaded {
  std::string path;  // on the host
  std::uint64_t bytes = 0;
  std::string sha256;              // of what is there
  std::uint64_t resumed_from = 0;  // bytes that an earlier call had brought
  bool was_there = false;          // nothing was downloaded
};

// Denied without a digest, unless `trust_without_digest` says so: the sentence names the option.
// Denied if the digest is another one; the file is removed. TooLarge beyond `limit_bytes` or the
// pinned size, Timeout when nothing arrives for `stall` too often, NotFound if the server does not
// have the file. Busy if another process downloads the same file.
Result<Downloaded> download(const sys::Host& host, const DownloadRequest& request,
                            DownloadProgress& progress);

// The decision about the digest alone.
Status check_digest_source(const DownloadRequest& request);

// "https://us.download.nvidia.com/XFree86/Linux-x86_64/580.159.04/NVIDIA-Linux-x86_64-...run"; with
// a mirror ("https://mirror.example.org/nvidia") the same path below it.
Result<std::string> download_url(std::string_view version, std::string_view architecture,
                                 std::string_view mirror);

}  // namespace gantry::driver_package
