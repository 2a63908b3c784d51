// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "install/driver_setup/package_database_internal.hpp"

#include <algorithm>

namespace gantry::driver_setup {
namespace {

constexpr std::chrono::seconds kPackageDeadline{3600};

// "Purg libnvidia-ml1 [535.183.01-1]" of a simulation.
std::vector<std::string> removed_packages(std::string_view simulation) {
  std::vector<std::string> names;
  for (const auto line : lines(simulation)) {
    const auto words = split(line, ' ');
    if (words.size() > 1 && (words[0] == "Purg" || words[0] == "Remv"))
      names.emplace_back(words[1].substr(0, words[1].find(':')));
  }
  return names;
}

Result<std::vector<std::string>> simulate(InstallEffects& effects, std::vector<std::string> words,
                                          const std::vector<std::string>& packages) {
  words.insert(words.begin(), {"apt-get", "--simulate"});
  words.insert(words.end(), packages.begin(), packages.end());
  GANTRY_TRY(const auto output, effects.run(package_command(words)));
  return removed_packages(output);
}

}  // namespace

bool is_apt(const std::vector<std::string>& argv) {
  return std::find(argv.begin(), argv.end(), "apt-get") != argv.end();
}

ProgramCall package_command(const std::vector<std::string>& argv) {
  ProgramCall call{.words = {}, .needs = {}, .deadline = kPackageDeadline};
  for (const auto& word : argv) call.words.push_back({.text = word});
  // A reboot is needed, zypper itself is newer, another repository cannot be read (man zypper).
  if (!argv.empty() && argv.front() == "zypper") call.good = {102, 103, 106};
  return call;
}

Result<PackageVersions> read_packages(InstallEffects& effects, bool apt) {
  const std::vector<std::string> dpkg = {"dpkg-query", "-W", "-f",
                                         "${db:Status-Status} ${Package} ${Version}\\n"};
  const std::vector<std::string> rpm = {"rpm", "-qa", "--qf",
                                        "installed %{NAME} %{VERSION}-%{RELEASE}\\n"};
  GANTRY_TRY(
      const auto output,
      effects.run(package_command(apt ? dpkg : rpm)).in("asking which packages are installed"));
  PackageVersions packages;
  for (const auto line : lines(output)) {
    const auto words = split(line, ' ');
    if (words.size() == 3 && words[0] == "installed")
      packages.insert_or_assign(std::string(words[1]), std::string(words[2]));
  }
  return packages;
}

Result<std::vector<std::string>> came_with(InstallEffects& effects,
                                           const std::vector<std::string>& packages) {
  GANTRY_TRY(const auto unneeded, simulate(effects, {"autoremove"}, {}));
  GANTRY_TRY(auto removed, simulate(effects, {"purge", "--autoremove"}, packages));
  std::erase_if(removed, [&](const std::string& name) {
    return std::find(unneeded.begin(), unneeded.end(), name) != unneeded.end() ||
           std::find(packages.begin(), packages.end(), name) != packages.end();
  });
  return removed;
}

}  // namespace gantry::driver_setup
