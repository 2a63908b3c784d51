// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/package_info.hpp"

#include "base/core/text.hpp"
#include "install/driver_package/checksum.hpp"
#include "install/driver_package/run_header.hpp"
#include "install/driver_setup/layout.hpp"
#include "install/preflight/facts.hpp"

#include <sys/stat.h>
#include <sys/utsname.h>

#include <fmt/format.h>

#include <cerrno>

namespace gantry::driver_setup {
namespace {

using preflight::Source;

constexpr std::int64_t kNanoseconds = 1'000'000'000;

Result<FileStamp> stamp_of(const sys::Host& host, const std::string& path) {
  GANTRY_TRY(const auto fd, host.open(path, O_PATH));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return Error::sys(errno, fmt::format("stat {}", path));
  if (!S_ISREG(info.st_mode))
    return Error(Errc::Invalid, fmt::format("{} is not a file", host.outside(path)));
  return FileStamp{.path = path,
                   .bytes = static_cast<std::uint64_t>(info.st_size),
                   .modified_ns = static_cast<std::int64_t>(info.st_mtim.tv_sec) * kNanoseconds +
                                  info.st_mtim.tv_nsec};
}

std::string architecture_here() {
  struct utsname names {};
  return ::uname(&names) == 0 ? static_cast<const char*>(names.machine) : "x86_64";
}

Status check_version(const std::string& wanted, const std::string& found, std::string_view where) {
  if (wanted.empty() || wanted == found) return {};
  return Error(Errc::Invalid, fmt::format("{} has the driver {}, not {}", where, found, wanted))
      .advise(fmt::format("use --version {}, or another file", found));
}

// The header says what an archive is, whatever name the file has.
Status check_kind(const driver_package::RunHeader& header, const preflight::DriverRequest& request,
                  std::string_view where) {
  using driver_package::RunKind;
  const auto usual = driver_package::run_file_name(
      {.architecture = header.architecture, .version = header.version});
  if (header.kind == RunKind::VgpuHost)
    return Error(Errc::Unsupported,
                 fmt::format("{} is the driver of a vGPU host, which has no CUDA", where))
        .advise(fmt::format("for containers use {}", usual));
  if (header.kind == RunKind::GuestDriver && request.source == Source::Run)
    return Error(Errc::Invalid, fmt::format("{} is the guest driver of vGPUs", where))
        .advise(fmt::format("use --source grid; for whole GPUs use {}", usual));
  if (header.kind == RunKind::Driver && request.source == Source::Grid)
    return Error(
               Errc::Invalid,
               fmt::format("{} is the driver for whole GPUs, not the guest driver of vGPUs", where))
        .advise(fmt::format("use --source run, or the archive {}",
                            driver_package::run_file_name({.architecture = header.architecture,
                                                           .version = header.version,
                                                           .kind = RunKind::GuestDriver})));
  return {};
}

// A relative path is one of the directory that the command was given in.
Error missing_archive(const sys::Host& host, const std::string& path, const Error& error) {
  if (!preflight::is_only_here(host, path)) return error;
  return Error(Errc::NotFound, fmt::format("there is no file {}", host.outside(path)))
      .advise(fmt::format("{}: copy {} below {}, and give its path there",
                          preflight::kPathsAreOfMachine, path, host.root()));
}

Result<PackageInfo> local_file(const sys::Host& host, const preflight::DriverRequest& request,
                               const std::optional<InstallRecord>& record) {
  PackageInfo package;
  auto stamp = stamp_of(host, request.run_file);
  if (!stamp.ok()) return missing_archive(host, request.run_file, stamp.error());
  package.archive = *std::move(stamp);
  if (record && !record->digest.empty() && record->archive == package.archive) {
    package.version = record->version;
    package.digest = record->digest;
  } else {
    GANTRY_TRY(const auto header, driver_package::read_run_header(host, request.run_file));
    GANTRY_CHECK(check_kind(header, request, host.outside(request.run_file)));
    package.version = header.version;
    GANTRY_TRY(package.digest, driver_package::sha256_of(host, request.run_file));
  }
  GANTRY_CHECK(check_version(request.version, package.version, host.outside(request.run_file)));
  if (request.sha256.empty()) return package;
  GANTRY_TRY(const auto wanted, driver_package::parse_sha256(request.sha256));
  if (wanted == package.digest) return package;
  return Error(Errc::Denied, fmt::format("{} has the digest {}, not {}",
                                         host.outside(request.run_file), package.digest, wanted))
      .advise("it is another file or damaged: get it again from a source that you trust");
}

Result<PackageInfo> remote_file(const preflight::DriverRequest& request) {
  PackageInfo package{.version = request.version, .url = request.url};
  if (!request.sha256.empty()) {
    GANTRY_TRY(package.digest, driver_package::parse_sha256(request.sha256));
  }
  if (package.url.empty()) {
    if (package.version.empty())
      return Error(Errc::Invalid, "it is not said which driver to install")
          .advise("give --version VERSION, --run FILE or --url URL");
    GANTRY_TRY(package.url,
               driver_package::download_url(package.version, architecture_here(), request.mirror));
  }
  if (!package.version.empty()) return package;
  GANTRY_TRY(const auto name, driver_package::parse_run_name(package.url));
  package.version = name.version;
  return package;
}

}  // namespace

Result<PackageInfo> identify_package(const sys::Host& host, const preflight::DriverRequest& request,
                                     const std::optional<InstallRecord>& record) {
  if (request.source == Source::Packages || request.source == Source::NvidiaContainer)
    return PackageInfo{.version = request.version};
  if (!request.run_file.empty()) return local_file(host, request, record);
  return remote_file(request);
}

Result<PackageInfo> fetch_package(const sys::Host& host, const preflight::DriverRequest& request,
                                  const PackageInfo& package, InstallEffects& effects) {
  if (!request.run_file.empty()) return package;
  const driver_package::DownloadRequest wanted{
      .package = {.version = package.version, .url = package.url, .sha256 = package.digest},
      .directory = std::string(kDownloads),
      .trust_without_digest = request.trust_download_without_digest};
  GANTRY_TRY(const auto done, effects.download(wanted));
  auto fetched = package;
  fetched.digest = done.sha256;
  GANTRY_TRY(fetched.archive, stamp_of(host, done.path));
  GANTRY_TRY(const auto header, driver_package::read_run_header(host, done.path));
  GANTRY_CHECK(check_kind(header, request, package.url));
  GANTRY_CHECK(check_version(package.version, header.version, package.url));
  return fetched;
}

Result<std::string> patch_digest_of(const sys::Host& host,
                                    const preflight::DriverRequest& request) {
  if (request.patch.empty()) return std::string();
  return driver_package::sha256_of(host, request.patch);
}

}  // namespace gantry::driver_setup
