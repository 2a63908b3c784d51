// SPDX-License-Identifier: Apache-2.0
// Facts about packages carry their source: [D] Debian's own package indexes, read; [N] NVIDIA's
// driver installation guide or the scripts that it publishes; [S] the guide of SUSE's maintainer;
// [P] several public scripts that agree. What has none of these is marked "not verified".
#include "install/driver_package/distribution.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "base/sys/shell_command.hpp"
#include "install/driver_package/distribution_internal.hpp"
#include "install/driver_package/run_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::driver_package {
namespace {

// The last branch for Maxwell, Pascal and Volta; it also drives everything newer so far.
constexpr std::string_view kDefaultBranch = "580";
constexpr unsigned kOpenByDefault = 560;  // [N]
constexpr unsigned kFirstBranch = 300;

Error bad_version(std::string_view version) {
  return Error(Errc::Invalid,
               fmt::format("`{}` is not a version of a driver", printable(version.substr(0, 40))))
      .advise("write a branch (580) or all of it (580.159.04)");
}

bool is_kernel_release(std::string_view text) {
  return !text.empty() && text.size() <= 128 && text.front() != '-' &&
         std::ranges::all_of(text, [](char c) {
           return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
                  c == '_' || c == '-' || c == '+' || c == '~';
         });
}

bool is_mirror(std::string_view url) {
  constexpr std::array<std::string_view, 3> kSchemes = {"https://", "http://", "file:///"};
  const bool known = std::ranges::any_of(
      kSchemes, [&](std::string_view scheme) { return url.starts_with(scheme); });
  return known && url.size() <= 1024 && printable(url) == url &&
         url.find_first_of(" \"'\\$`") == std::string_view::npos;
}

Status read_version(std::string_view text, PackageChoice& choice) {
  choice.branch_given = !text.empty();
  const auto version = text.empty() ? kDefaultBranch : text;
  if (is_driver_version(version)) choice.version = version;
  choice.branch = version.substr(0, version.find('.'));
  const auto number = parse_u64(choice.branch);
  if (!number || *number < kFirstBranch || *number > 9999) return bad_version(text);
  if (choice.version.empty() && version.size() != choice.branch.size()) return bad_version(text);
  choice.number = static_cast<unsigned>(*number);
  return {};
}

Result<PackageChoice> check(const PackageRequest& request) {
  PackageChoice choice;
  GANTRY_CHECK(read_version(request.version, choice));
  if (!is_kernel_release(request.kernel))
    return Error(Errc::Invalid, fmt::format("`{}` is not the release of a kernel",
                                            printable(request.kernel.substr(0, 80))));
  if (request.architecture != "x86_64" && request.architecture != "aarch64")
    return Error(Errc::Unsupported, fmt::format("NVIDIA has no packages for {}",
                                                printable(request.architecture.substr(0, 40))));
  if (!request.repository.empty() && !is_mirror(request.repository))
    return Error(Errc::Invalid, fmt::format("`{}` is not the URL of a mirror",
                                            printable(request.repository.substr(0, 200))));
  choice.kernel = request.kernel;
  choice.architecture = request.architecture;
  choice.repository = request.repository;
  while (choice.repository.ends_with('/')) choice.repository.pop_back();
  choice.open =
      request.flavour == model::ModuleFlavour::Open ||
      (request.flavour == model::ModuleFlavour::Unknown && choice.number >= kOpenByDefault);
  return choice;
}

using Planner = Result<PackagePlan> (*)(const OsRelease&, const PackageChoice&);
struct Row {
  std::string_view id;
  Planner planner;
};

// By ID, then by ID_LIKE: a derivative is planned like what it says that it is like.
constexpr std::array kPlanners = {
    Row{"ubuntu", plan_ubuntu},
    Row{"debian", plan_debian},
    Row{"fedora", plan_fedora},
    Row{"rhel", plan_enterprise_linux},
    Row{"centos", plan_enterprise_linux},
    Row{"ol", plan_enterprise_linux},
    Row{"amzn", plan_amazon},
    Row{"azurelinux", plan_azure},
    Row{"sles", plan_suse},
    Row{"suse", plan_suse},
};

// Their versions are not those of the distribution that they are like.
constexpr std::array<std::string_view, 4> kOwnVersions = {"linuxmint", "kali", "raspbian", "pop"};

Planner planner_of(const OsRelease& release) {
  for (const auto& row : kPlanners)
    if (release.id == row.id) return row.planner;
  // These say that they are like Fedora, too, whose versions they do not have.
  if (is_like(release, "rhel")) return plan_enterprise_linux;
  if (is_like(release, "suse")) return plan_suse;
  if (std::ranges::find(kOwnVersions, release.id) != kOwnVersions.end()) return nullptr;
  for (const auto& row : kPlanners)
    if (row.id != "fedora" && is_like(release, row.id)) return row.planner;
  return nullptr;
}

// As a person does it who then compares the fingerprint.
std::string key_commands(const PackageStep& step) {
  const auto file = sys::shell_word(step.file);
  auto url = sys::shell_word(step.key_url);
  if (step.key_url.ends_with(".repo"))
    url = fmt::format("\"$(curl -fsSL {} | sed -n 's/^gpgkey=//p')\"", url);
  return fmt::format("curl -fsSL --create-dirs -o {0} {1}\ngpg --show-keys {0}\n", file, url);
}

}  // namespace

std::string_view to_string(PackageTool tool) {
  switch (tool) {
    case PackageTool::Apt: return "apt-get";
    case PackageTool::Dnf: return "dnf";
    case PackageTool::Tdnf: return "tdnf";
    case PackageTool::Zypper: return "zypper";
  }
  return "apt-get";
}

unsigned major_version(const OsRelease& release) {
  const std::string_view text = release.version_id;
  const auto number = parse_u64(text.substr(0, text.find('.')));
  return number && *number < 100'000 ? static_cast<unsigned>(*number) : 0;
}

std::vector<PackageStep> trust_rpm_key(std::string_view what, const std::string& url,
                                       const std::string& file) {
  return {{.kind = StepKind::Key,
           .file = file,
           .what = fmt::format("Get the key that signs {}", what),
           .key_url = url},
          command(StepKind::Key, "Let rpm trust this key", {"rpm", "--import", file})};
}

std::string key_leftovers() {
  return "`gantry driver remove` takes the key out of rpm's database if it was not there before.";
}

Error unsupported(const OsRelease& release, std::string_view why, std::string_view remedy) {
  const auto name = release.pretty_name.empty()
                        ? fmt::format("{} {}", release.id, release.version_id)
                        : release.pretty_name;
  return Error(Errc::Unsupported, fmt::format("{}: {}", name, why)).advise(remedy);
}

Result<PackagePlan> plan_packages(const OsRelease& release, const PackageRequest& request) {
  GANTRY_TRY(const auto choice, check(request));
  const auto planner = planner_of(release);
  if (planner == nullptr)
    return unsupported(release, "there are no packages of NVIDIA's driver for this distribution",
                       "install a .run file: `gantry driver install --source run`");
  return planner(release, choice);
}

std::string driver_version_of(std::string_view package_version) {
  auto text = package_version.substr(package_version.find(':') + 1);  // npos + 1 is 0
  text = text.substr(0, text.find_first_of("-_~+"));
  // A kernel's version has the same form.
  const auto branch = parse_u64(text.substr(0, text.find('.')));
  return is_driver_version(text) && branch >= kFirstBranch ? std::string(text) : "";
}

std::string to_text(const PackagePlan& plan) {
  std::string text;
  for (const auto& step : plan.steps) {
    text += fmt::format("# {}\n", step.what);
    if (!step.key_url.empty())
      text += key_commands(step);
    else if (!step.file.empty())
      text += fmt::format("cat >{} <<'EOF'\n{}EOF\n", sys::shell_word(step.file), step.content);
    std::string line;
    for (const auto& word : joined(step.argv, step.packages))
      line += fmt::format("{}{}", line.empty() ? "" : " ", sys::shell_word(word));
    if (!line.empty()) text += line + "\n";
  }
  return text;
}

}  // namespace gantry::driver_package
