// SPDX-License-Identifier: Apache-2.0
// docs/vm.md says which files a confined service that runs `gantry vfio bind --persist` writes. The
// whole commands run here and leave no other file behind. src/vm/vfio/confinement_test.cpp has the
// kernel's files.
#include "support/confinement_rules.hpp"
#include "support/machine.hpp"
#include "support/run_cli.hpp"

#include <sys/stat.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <set>

namespace gantry::cli {
namespace {

constexpr const char* kGpu = "0000:84:00.0";

// Which file is there, to see what was written: "1234 1700000000.5". Directories end with "/".
std::map<std::string, std::string> files_of(const test::Machine& machine) {
  std::map<std::string, std::string> files;
  for (const std::string top : {"/etc", "/run", "/var", "/usr", "/lib", "/tmp"}) {
    if (!std::filesystem::is_directory(machine.path(top))) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(machine.path(top))) {
      struct stat st {};
      if (::lstat(entry.path().c_str(), &st) != 0) continue;
      auto name = entry.path().string().substr(machine.root().size());
      const bool directory = S_ISDIR(st.st_mode);
      files[directory ? name + "/" : name] =
          directory ? ""
                    : fmt::format("{} {}.{}", st.st_ino, st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    }
  }
  return files;
}

class VfioConfinement : public testing::Test {
 protected:
  VfioConfinement() {
    for (const auto* directory : {"/run/systemd/system", "/etc/systemd/system"})
      machine_.file(std::string(directory) + "/.keep", "");
  }

  void run(std::vector<std::string> words) {
    const auto before = files_of(machine_);
    words.insert(words.begin(), {"gantry", "vfio"});
    words.insert(words.end(), {"--root", machine_.root()});
    const auto done = test::run_cli(words);
    ASSERT_EQ(done.status, 0) << done.err;
    for (const auto& [name, state] : files_of(machine_)) {
      const auto known = before.find(name);
      if (known == before.end() || known->second != state) written_.insert(name);
    }
  }

  test::Machine machine_{"vfio"};
  std::set<std::string> written_;
};

TEST_F(VfioConfinement, TheRulesAreThoseThatBindAndReleaseNeed) {
  run({"bind", kGpu, "--persist"});
  run({"release", kGpu});
  EXPECT_THAT(written_, testing::Contains("/var/lib/gantry/ledger"));
  EXPECT_THAT(written_, testing::Contains("/etc/systemd/system/gantry-vfio.service"));
  const auto rules = test::write_rules({"/etc/", "/run/", "/var/"});
  EXPECT_EQ(rules.size(), 11U);
  for (const auto& path : written_) EXPECT_TRUE(test::any_allows(rules, path)) << path;
  for (const auto& rule : rules) {
    EXPECT_TRUE(std::any_of(written_.begin(), written_.end(), [&](const std::string& path) {
      return test::allows(rule, path);
    })) << rule;
  }
}

}  // namespace
}  // namespace gantry::cli
