// SPDX-License-Identifier: Apache-2.0
#include "install/driver_package/download.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "base/sys/trusted.hpp"
#include "install/driver_package/part_file_internal.hpp"
#include "install/driver_package/run_header.hpp"
#include "install/driver_package/transfer_internal.hpp"
#include "net/http/client.hpp"

#include <fmt/format.h>

namespace gantry::driver_package {
namespace {

constexpr std::string_view kNvidia = "https://us.download.nvidia.com";

Error without_digest(std::string_view why) {
  return Error(Errc::Denied, fmt::format("{}, and the installer runs as root", why))
      .advise(
          "pin the file's SHA-256 digest in the configuration (--sha256), taken from a machine "
          "where this driver was tested; --trust-download-without-digest takes the risk");
}

// What the request pins; "" if nothing, or if the digest does not count.
Result<std::string> pinned_digest(const DownloadRequest& request) {
  if (request.package.sha256.empty()) return std::string();
  return parse_sha256(request.package.sha256);
}

Result<std::string> file_name_for(const DownloadRequest& request) {
  auto name = request.file_name;
  if (name.empty()) {
    GANTRY_TRY(const auto url, http::parse_url(request.package.url));
    name = base_name(std::string_view(url.prefix).substr(0, url.prefix.find_first_of("?#")));
  }
  const bool usable = !name.empty() && name.size() <= 200 && name.front() != '.' &&
                      name.front() != '-' && printable(name) == name &&
                      name.find('/') == std::string::npos;
  if (usable) return name;
  return Error(Errc::Invalid, fmt::format("`{}` is not a name for a file", printable(name)))
      .advise("use a URL that ends in the name of a .run file");
}

class Download {
 public:
  Download(const sys::Host& host, const DownloadRequest& request, DownloadProgress& progress)
      : host_(host), request_(request), progress_(progress) {}

  Result<Downloaded> run() {
    GANTRY_CHECK(check_digest_source(request_));
    GANTRY_TRY(digest_, pinned_digest(request_));
    GANTRY_TRY(const auto name, file_name_for(request_));
    GANTRY_TRY(auto part, PartFile::open(host_, request_.directory, name));
    path_ = join_path(request_.directory, name);
    GANTRY_TRY(auto there, find_finished());
    if (there.was_there) {
      if (part.size() == 0) GANTRY_CHECK(part.discard());
      return there;
    }
    return fetch(part).in(fmt::format("downloading {}", name));
  }

 private:
  // A file of an earlier call, if it is still the right one.
  Result<Downloaded> find_finished() {
    Downloaded there{.path = path_};
    const auto info = host_.link_info(path_);
    if (!info.ok() && info.error().code() == Errc::NotFound) return there;
    if (!info.ok()) return Error(info.error());
    if (info->kind != sys::FileKind::Regular)
      return Error(Errc::Invalid, fmt::format("{} is not a file", path_)).advise("remove it");
    GANTRY_TRY(const auto owner, host_.info("/"));
    GANTRY_CHECK(sys::check_trusted(info->uid, info->mode, owner.uid, path_));
    GANTRY_TRY(there.sha256, sha256_of(host_, path_));
    there.bytes = info->size;
    const auto pinned = request_.package.bytes;
    const bool right =
        (digest_.empty() || there.sha256 == digest_) && (pinned == 0 || pinned == there.bytes);
    if (right)
      there.was_there = true;
    else
      progress_.note(fmt::format("{} is another file than was asked for: replaces it", path_));
    return there;
  }

  Result<Downloaded> fetch(PartFile& part) {
    auto resumed = usable_part(part) ? part.size() : 0;
    if (resumed == 0 && part.size() > 0) GANTRY_CHECK(part.clear());
    for (bool first = true; true; first = false) {
      if (!is_whole(part)) GANTRY_CHECK(Transfer(request_, part, progress_).run());
      GANTRY_TRY(const auto found, part.sha256());
      if (digest_.empty() || found == digest_) {
        const auto bytes = part.size();
        GANTRY_CHECK(part.publish());
        return Downloaded{.path = path_, .bytes = bytes, .sha256 = found, .resumed_from = resumed};
      }
      // The first part may be of a file that the server does not have any more.
      if (!first || resumed == 0) return refuse(part, found);
      progress_.note("the digest is another one; begins again without what was there");
      resumed = 0;
      GANTRY_CHECK(part.set_info({}));
      GANTRY_CHECK(part.clear());
    }
  }

  bool usable_part(const PartFile& part) const {
    const auto most = request_.package.bytes != 0 ? request_.package.bytes : request_.limit_bytes;
    // Without a validator only the digest tells whether both parts are of the same file.
    const bool comparable = !part.info().validator.empty() || !digest_.empty();
    return part.info().url == request_.package.url && part.size() <= most && comparable;
  }

  // Killed between the last byte and the new name.
  bool is_whole(const PartFile& part) const {
    const auto total = request_.package.bytes != 0 ? request_.package.bytes : part.info().total;
    return part.size() > 0 && part.size() == total && part.info().url == request_.package.url;
  }

  Error refuse(PartFile& part, const std::string& found) {
    auto text = fmt::format("{} has the SHA-256 digest {}, but {} was asked for",
                            request_.package.url, found, digest_);
    if (const auto removed = part.discard(); !removed.ok())
      text += fmt::format(" (and could not be removed: {})", removed.error().text());
    return Error(Errc::Denied, std::move(text))
        .advise(
            "find out which of the two is right before you change the configuration: a file "
            "with another digest is not the driver that somebody tested");
  }

  const sys::Host& host_;
  const DownloadRequest& request_;
  DownloadProgress& progress_;
  std::string digest_;
  std::string path_;
};

}  // namespace

Status check_digest_source(const DownloadRequest& request) {
  GANTRY_TRY(const auto url, http::parse_url(request.package.url));
  if (request.checked_by_caller) return {};
  std::string_view why;
  if (request.package.sha256.empty()) {
    why = "no digest says which file is expected";
  } else {
    GANTRY_CHECK(parse_sha256(request.package.sha256));
    if (request.digest_url.empty()) return {};
    GANTRY_TRY(const auto source, http::parse_url(request.digest_url));
    if (to_lower(source.endpoint.host) != to_lower(url.endpoint.host)) return {};
    why = "the digest comes from the server that has the file, so it proves nothing";
  }
  if (!request.trust_without_digest) return without_digest(why);
  if (url.endpoint.secure) return {};
  return Error(Errc::Denied,
               fmt::format("{}, and http lets anybody on the way replace the file", why))
      .advise("use https, or pin the file's SHA-256 digest (--sha256)");
}

Result<Downloaded> download(const sys::Host& host, const DownloadRequest& request,
                            DownloadProgress& progress) {
  return Download(host, request, progress).run();
}

Result<std::string> download_url(std::string_view version, std::string_view architecture,
                                 std::string_view mirror) {
  if (!is_driver_version(version))
    return Error(Errc::Invalid,
                 fmt::format("`{}` is not a version of a driver", printable(version.substr(0, 40))))
        .advise("write all of it, for example 580.159.04");
  if (architecture != "x86_64" && architecture != "aarch64")
    return Error(Errc::Unsupported,
                 fmt::format("NVIDIA has no driver for {}", printable(architecture.substr(0, 40))));
  std::string base(mirror.empty() ? kNvidia : mirror);
  GANTRY_CHECK(http::parse_url(base));
  while (base.ends_with('/')) base.pop_back();
  return fmt::format(
      "{}/XFree86/Linux-{}/{}/{}", base, architecture, version,
      run_file_name({.architecture = std::string(architecture), .version = std::string(version)}));
}

}  // namespace gantry::driver_package
