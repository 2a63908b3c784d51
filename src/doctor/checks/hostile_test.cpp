// SPDX-License-Identifier: Apache-2.0
// Every file of a machine in turn is gone, empty, rubbish, endless or something else than a file.
// Whatever a check then says, it says it: no crash, no hang, and an answer that can be printed.
#include "doctor/checks/all_checks.hpp"
#include "doctor/checks/machine_for_test.hpp"
#include "doctor/engine/report.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

namespace gantry::doctor {
namespace {

namespace fs = std::filesystem;

struct Damage {
  const char* name;
  void (*apply)(const std::string& path);
};

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::trunc | std::ios::binary) << bytes;
}

std::string rubbish() {
  std::string bytes;
  unsigned state = 1;
  for (int i = 0; i < 4096; ++i) {
    state = state * 1664525U + 1013904223U;
    bytes += static_cast<char>(state >> 24U);
  }
  return bytes;
}

constexpr Damage kDamages[] = {
    {"gone", [](const std::string& path) { fs::remove(path); }},
    {"empty", [](const std::string& path) { write(path, ""); }},
    {"rubbish", [](const std::string& path) { write(path, rubbish()); }},
    {"newlines", [](const std::string& path) { write(path, "\n\n: \n=\n"); }},
    {"endless",
     [](const std::string& path) {
       if (::truncate(path.c_str(), 1LL << 40U) != 0) write(path, std::string(100000, 'a'));
     }},
    {"a directory",
     [](const std::string& path) {
       fs::remove(path);
       fs::create_directory(path);
     }},
    {"a FIFO",
     [](const std::string& path) {
       fs::remove(path);
       ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
     }},
};

// As rich as can be: what is not there cannot be damaged.
void write_test_files(TestMachine& p) {
  p.second_gpu().nvswitch().kubelet("cgroupDriver: systemd\ntopologyManagerPolicy: none\n");
  p.process("nvidia-persistenced").log("NVRM: Xid (PCI:0000:00:06): 48, pid=1, name=a, text");
  p.tree.file("etc/docker/daemon.json", R"({"runtimes": {"nvidia": {"path": "/usr/bin/x"}}})")
      .file("etc/containerd/config.toml", "version = 2\n[plugins]\n")
      .file("etc/nvidia-container-runtime/config.toml", "[nvidia-container-cli]\n")
      .file("etc/cdi/nvidia.yaml", "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices: []\n")
      .file("etc/modprobe.d/nvidia.conf", "options nvidia NVreg_DeviceFileMode=0666\n")
      .file("var/log/fabricmanager.log", "Fabric Manager version is : 535.1\n")
      .file("sys/fs/selinux/enforce", "1\n");
}

std::vector<std::string> files_of(const std::string& root) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.is_regular_file() && !entry.is_symlink()) {
      files.push_back(fs::relative(entry.path(), root).string());
    }
  }
  return files;
}

class HostileFiles : public ::testing::TestWithParam<Damage> {};

TEST_P(HostileFiles, AreAnsweredByEveryCheck) {
  TestMachine whole;
  write_test_files(whole);
  const auto host = whole.host();
  const auto checks = all_checks();
  for (const auto& file : files_of(whole.tree.root())) {
    const auto path = whole.tree.path(file);
    const auto aside = whole.tree.root() + ".aside";
    fs::copy_file(path, aside, fs::copy_options::overwrite_existing);
    GetParam().apply(path);
    const auto outcomes = run_checks(Facts(host, whole.inventory, whole.sources), checks);
    EXPECT_EQ(outcomes.size(), checks.size()) << file;
    EXPECT_FALSE(report_text(outcomes, {}).empty());
    fs::remove_all(path);
    fs::rename(aside, path);
  }
}

INSTANTIATE_TEST_SUITE_P(Damages, HostileFiles, ::testing::ValuesIn(kDamages),
                         [](const auto& damage) {
                           std::string name = damage.param.name;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

}  // namespace
}  // namespace gantry::doctor
