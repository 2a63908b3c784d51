// SPDX-License-Identifier: Apache-2.0
#include "install/driver_package/sign_file.hpp"

#include "base/core/text.hpp"
#include "base/sys/shell_command.hpp"

#include <fmt/format.h>

namespace gantry::driver_package {
namespace {

// The one that NVIDIA's driver container signs with.
constexpr std::string_view kDigest = "sha512";

bool is_token(std::string_view key) {
  return key.starts_with("pkcs11:");
}

Status check_key(const sys::Host& host, const std::string& key) {
  if (is_token(key)) return {};
  GANTRY_TRY(const auto info, host.info(key).in("looking at the signing key, which is not read"));
  if (info.kind != sys::FileKind::Regular)
    return Error(Errc::Invalid, fmt::format("the signing key {} is not a file", key));
  if ((info.mode & 077U) == 0) return {};
  return Error(Errc::Denied, fmt::format("other users than its owner may use the signing key {}, "
                                         "whose mode is {:04o}",
                                         key, info.mode))
      .advise(fmt::format("sudo chmod 600 {}", sys::shell_word(key)));
}

// Distributions have it below the build directory, which may be a link, or in a package of its own.
Result<std::string> find_program(const sys::Host& host, const std::string& build) {
  const auto program = join_path(build, "scripts/sign-file");
  if (host.exists(program)) return program;
  return Error(Errc::NotFound, fmt::format("{} is missing", program))
      .advise(
          "install the headers of the kernel (on Debian and its derivatives linux-headers of "
          "the same release with linux-kbuild), or sign with `kmodsign` elsewhere");
}

}  // namespace

Result<SignPlan> plan_sign(const sys::Host& host, const std::string& build, const SigningKey& key,
                           const std::vector<std::string>& modules) {
  if (key.key.empty() || key.certificate.empty())
    return Error(Errc::Invalid, "signing needs a key and its certificate")
        .advise("give --sign-key and --sign-certificate together");
  if (modules.empty()) return Error(Errc::Invalid, "there is no module to sign");
  GANTRY_CHECK(check_key(host, key.key));
  GANTRY_CHECK(
      host.info(key.certificate).ok()
          ? Status()
          : Error(Errc::NotFound, fmt::format("the certificate {} is not there", key.certificate)));
  GANTRY_TRY(const auto program, find_program(host, build));
  SignPlan plan;
  for (const auto& module : modules) {
    if (module.ends_with(".xz") || module.ends_with(".zst") || module.ends_with(".gz"))
      return Error(Errc::Unsupported,
                   fmt::format("{} is packed: the signature belongs inside", module))
          .advise("sign the unpacked module, then pack it");
    plan.commands.push_back({program, std::string(kDigest), key.key, key.certificate, module});
  }
  plan.notes.emplace_back(
      "The kernel loads these modules only if the certificate is in its keyrings: enrol it with "
      "`mokutil --import CERTIFICATE`, confirm it at the console during the next boot, and check "
      "it "
      "with `keyctl list %:.machine` or `keyctl list %:.platform`.");
  if (!is_token(key.key))
    plan.notes.emplace_back(
        "A signing key on a node can sign anything that runs there. Sign on a machine of its own "
        "and install precompiled modules, or use a token (pkcs11:...).");
  return plan;
}

}  // namespace gantry::driver_package
