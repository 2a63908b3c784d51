// SPDX-License-Identifier: Apache-2.0
// Whether the request is complete and fits the kind of machine.
#include "base/core/printable.hpp"
#include "install/driver_package/checksum.hpp"
#include "install/driver_package/distribution.hpp"
#include "install/driver_package/download.hpp"
#include "install/driver_package/run_header.hpp"
#include "install/preflight/judge_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::preflight {
namespace {

using driver_package::RunKind;

void judge_version(Judgement& j) {
  const auto text = version_of(j.request);
  const bool may_be_open =
      j.request.source == Source::Packages || j.request.source == Source::NvidiaContainer;
  if (text.empty()) {
    if (may_be_open) return;
    j.block("version-missing",
            {.sentence = "no driver version was given",
             .remedy = j.request.as_google
                           ? "set NVIDIA_DRIVER_VERSION, such as 580.159.04"
                           : "gantry driver install --version 580.159.04, or the path of an "
                             "archive with the name that NVIDIA gave it"});
    return;
  }
  if (!j.version) {
    j.block("version-invalid",
            {.sentence = fmt::format("`{}` is not a version of the driver", printable(text)),
             .remedy = "versions look like 580.159.04 or 430.26"});
    return;
  }
  if (j.version->is_branch_only && !may_be_open) {
    j.block("version-is-branch",
            {.sentence = fmt::format("{} is a branch of the driver, not a version", text),
             .cause = "Only a distribution's packages can be asked for by branch.",
             .remedy = "give the whole version, such as 580.159.04, or use --source packages"});
  }
}

void judge_archive_name(Judgement& j) {
  const auto& path = j.request.run_file.empty() ? j.request.url : j.request.run_file;
  const auto name = driver_package::parse_run_name(path);
  if (path.empty() || !name.ok()) return;
  if (!j.facts.machine.empty() && name->architecture != j.facts.machine) {
    j.block("run-file-other-cpu",
            {.sentence = fmt::format("the archive is for {} processors, and this machine has {}",
                                     name->architecture, j.facts.machine),
             .remedy = fmt::format("use NVIDIA-Linux-{}-{}.run", j.facts.machine, name->version)});
  }
  const bool is_version = j.version && !j.version->is_branch_only;
  if (!j.request.version.empty() && is_version && name->version != j.request.version) {
    j.block("run-file-other-version",
            {.sentence = fmt::format("the archive has driver {}, and {} was asked for",
                                     name->version, j.request.version),
             .remedy = fmt::format("use the archive of {}, or --version {}", j.request.version,
                                   name->version)});
  }
  if (name->kind == RunKind::VgpuHost) {
    j.block("vgpu-host-driver-requested",
            {.sentence = fmt::format("{} is the driver of a vGPU host", printable(path)),
             .cause = "It gives GPUs to virtual machines and has no CUDA: containers could not use "
                      "the GPUs.",
             .remedy = fmt::format("for containers use NVIDIA-Linux-{}-{}.run", name->architecture,
                                   name->version)});
  }
}

void judge_files(Judgement& j) {
  for (const auto& file : j.facts.files) {
    if (file.exists) continue;
    j.block("file-missing", {.sentence = fmt::format("there is no file {}", printable(file.path)),
                             .remedy = "paths are those of the machine below --host-root"});
  }
  if (!j.request.run_file.empty() && !j.request.url.empty()) {
    j.block("source-unclear", {.sentence = "both a local archive and a URL were given",
                               .remedy = "give one of them"});
  }
}

std::string url_of(const MachineFacts& facts, const DriverRequest& request) {
  if (!request.url.empty()) return request.url;
  return driver_package::download_url(request.version, facts.machine, request.mirror).value_or("");
}

// The digest of an archive is known if this address is where it came from when it was checked. The
// same version from elsewhere may be other bytes.
bool is_placed(const MachineFacts& facts, const DriverRequest& request) {
  const auto& recorded = facts.recorded;
  const bool same = !recorded.digest.empty() && recorded.version == version_of(request) &&
                    !recorded.url.empty() && recorded.url == url_of(facts, request);
  return same && std::find(facts.placed_versions.begin(), facts.placed_versions.end(),
                           recorded.name) != facts.placed_versions.end();
}

void judge_digest(Judgement& j) {
  const auto& request = j.request;
  if (!request.sha256.empty()) {
    const auto digest = driver_package::parse_sha256(request.sha256);
    if (digest.ok()) return;
    j.block("digest-invalid",
            {.sentence = digest.error().cause(), .remedy = digest.error().remedy()});
    return;
  }
  const bool archive =
      request.source != Source::Packages && request.source != Source::NvidiaContainer;
  if (!archive || !request.run_file.empty() || request.trust_download_without_digest) return;
  if (is_placed(j.facts, request)) return;  // nothing is downloaded
  const auto* remedy =
      request.as_google
          ? "set NVIDIA_DRIVER_SHA256 to its sha256 from a source that you trust, or accept the "
            "risk with NVIDIA_DRIVER_TRUST_DOWNLOAD_WITHOUT_DIGEST=true"
          : "give --sha256, or accept the risk with --trust-download-without-digest";
  j.block(
      "download-without-digest",
      {.sentence = "the archive would be downloaded without a digest to compare it with",
       .cause = "The kernel module runs with all rights, and a digest from the same server would "
                "prove nothing.",
       .remedy = remedy});
}

void judge_signing(Judgement& j) {
  const auto& request = j.request;
  if (request.sign_key.empty() != request.sign_certificate.empty()) {
    j.block("signing-incomplete",
            {.sentence = request.sign_key.empty() ? "a certificate was given without its key"
                                                  : "a signing key was given without a certificate",
             .remedy = "give both --sign-key and --sign-certificate"});
  }
  if (request.sign_key.starts_with('/')) {
    j.warn("signing-key-on-node",
           {.sentence =
                fmt::format("the private key {} is on this machine", printable(request.sign_key)),
            .cause = "Every process that becomes root here can sign modules for all machines that "
                     "trust the key.",
            .remedy = "sign the modules on a build machine and use --source precompiled, or keep "
                      "the key in a token (pkcs11: URI)"});
  }
}

void judge_distribution(Judgement& j) {
  if (j.request.source != Source::Packages) return;
  driver_package::PackageRequest wanted;
  wanted.version = j.request.version;
  wanted.kernel = j.facts.build_release;
  if (!j.facts.machine.empty()) wanted.architecture = j.facts.machine;
  wanted.repository = j.request.mirror;
  if (j.request.flavour) {
    wanted.flavour = *j.request.flavour == Flavour::Open ? model::ModuleFlavour::Open
                                                         : model::ModuleFlavour::Proprietary;
  }
  const auto plan = driver_package::plan_packages(j.facts.os, wanted);
  if (plan.ok()) return;
  j.block("distribution-unsupported",
          {.sentence = plan.error().cause(), .remedy = plan.error().remedy()});
}

}  // namespace

void judge_request(Judgement& judgement) {
  judge_version(judgement);
  judge_archive_name(judgement);
  judge_files(judgement);
  judge_digest(judgement);
  judge_signing(judgement);
  judge_distribution(judgement);
}

}  // namespace gantry::preflight
