// SPDX-License-Identifier: Apache-2.0
// The log of Google's installer and its cache file, on a machine in a tree of files.
#include "install/google_installer/installer.hpp"

#include "base/core/text.hpp"
#include "install/driver_package/checksum.hpp"
#include "install/driver_setup/effects_for_test.hpp"
#include "install/driver_setup/machine_for_test.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::google_installer {
namespace {

using driver_setup::kNewDriver;
using driver_setup::kOldDriver;
using driver_setup::kSetupKernel;
using driver_setup::SetupMachine;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kDirectory = "/home/kubernetes/bin/nvidia";
constexpr const char* kCachePath = "/home/kubernetes/bin/nvidia/.cache";
constexpr const char* kArchiveUrl =
    "https://us.download.nvidia.com/XFree86/Linux-x86_64/460.56/NVIDIA-Linux-x86_64-460.56.run";

// What the seed's reader waits for, from its first line to the end of the log.
constexpr std::string_view kEndOfSeed003 =
    R"(+-----------------------------------------------------------------------------+
| NVIDIA-SMI 460.56       Driver Version: 460.56       CUDA Version: 11.2     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
|   0  Quadro K620         Off  | 00000000:03:00.0 Off |                  N/A |
| 33%   42C    P0     1W /  30W |      0MiB /  2000MiB |      0%      Default |
|                               |                      |                  N/A |
+-------------------------------+----------------------+----------------------+

+-----------------------------------------------------------------------------+
| Processes:                                                                  |
|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |
|        ID   ID                                                   Usage      |
|=============================================================================|
|  No running processes found                                                 |
+-----------------------------------------------------------------------------+
Verifying Nvidia installation... DONE.
Updating host's ld cache...
Updating host's ld cache... DONE.
)";

std::string table() {
  return std::string(kEndOfSeed003.substr(0, kEndOfSeed003.find("Verifying")));
}

std::string cache_of(const std::string& version) {
  return fmt::format("CACHE_KERNEL_VERSION={}\nCACHE_NVIDIA_DRIVER_VERSION={}\n", kSetupKernel,
                     version);
}

// A node whose pod has the manifest's variables, and a server that has the archive.
class Node {
 public:
  Node() {
    const auto path = machine_.archive(kOldDriver);
    const auto bytes = *machine_.host().read(path);
    driver_package::Sha256 sum;
    sum.add(bytes);
    digest_ = sum.finish();
    machine_.server[kArchiveUrl] = bytes;
    machine_.tree().remove(path);
    machine_.smi_table = table();
    environment_ = {.version = kOldDriver,
                    .url = kArchiveUrl,
                    .host_directory = kDirectory,
                    .container_directory = "/usr/local/nvidia",
                    .root = "/root",
                    .sha256 = digest_};
  }

  SetupMachine& machine() { return machine_; }
  Environment& environment() { return environment_; }
  const std::string& log() const { return log_; }

  // The pod starts. Its log is empty again.
  Status start() {
    const auto host = machine_.host();
    driver_setup::TestEffects effects(host, machine_);
    log_.clear();
    preflight::DriverRequest request{.directory = environment_.host_directory};
    GANTRY_CHECK(complete(request, environment_));
    use_existing_archive(host, environment_, request);
    GANTRY_CHECK(install(
        host, request, environment_, machine_.options(), effects,
        [&](std::string_view lines) { log_ += lines; }, fetch_headers));
    return {};
  }
  void expect_start() {
    const auto started = start();
    EXPECT_TRUE(started.ok()) << started.error().text();
  }
  FetchHeaders fetch_headers;

  std::string cache() { return machine_.host().read(kCachePath).value_or(""); }

 private:
  SetupMachine machine_;
  Environment environment_;
  std::string digest_, log_;
};

void expect_removed(Node& node) {
  const auto removed = node.machine().remove();
  EXPECT_TRUE(removed.ok()) << removed.error().text();
}

TEST(GoogleInstaller, PrintsTheLogOfSeed003) {
  Node node;
  node.expect_start();
  EXPECT_EQ(node.log(), fmt::format(R"(Checking cached version
Cache file /usr/local/nvidia/.cache not found.
Configuring installation directories...
Configuring installation directories... DONE.
Downloading Nvidia installer...
Downloading Nvidia installer... DONE.
Running Nvidia installer...
Running Nvidia installer... DONE.
Updated cached version as:
CACHE_KERNEL_VERSION=6.1.0-21-amd64
CACHE_NVIDIA_DRIVER_VERSION=460.56
Verifying Nvidia installation...
{})",
                                    kEndOfSeed003));
  EXPECT_EQ(node.cache(), cache_of(kOldDriver));
  for (const auto* path : {"bin/nvidia-smi", "lib64/libcuda.so.1", "drivers"})
    EXPECT_TRUE(node.machine().host().exists(fmt::format("{}/{}", kDirectory, path))) << path;
}

constexpr std::string_view kCachedLog = R"(Checking cached version
Found existing driver installation for kernel version 6.1.0-21-amd64 and driver version 460.56.
Configuring cached driver installation...
Configuring cached driver installation... DONE
Verifying Nvidia installation...
)";

TEST(GoogleInstaller, AnotherStartTouchesNothing) {
  Node node;
  node.expect_start();
  const auto files = node.machine().files();
  node.machine().script = {};
  node.expect_start();
  EXPECT_EQ(node.log(), std::string(kCachedLog) + std::string(kEndOfSeed003));
  EXPECT_EQ(node.machine().files(), files);
  EXPECT_EQ(node.machine().script.log.size(), 1U) << "only nvidia-smi is run";
  EXPECT_EQ(node.machine().reads_of_facts, 1);
}

TEST(GoogleInstaller, AfterABootItOnlyLoads) {
  Node node;
  node.expect_start();
  node.machine().reboot();
  node.machine().script = {};
  node.expect_start();
  EXPECT_EQ(node.log(), std::string(kCachedLog) + std::string(kEndOfSeed003));
  EXPECT_EQ(node.machine().loaded(), kOldDriver);
  for (const auto& entry : node.machine().script.log) EXPECT_THAT(entry, Not(HasSubstr("make")));
}

TEST(GoogleInstaller, RefusesADownloadWithoutADigestAndNamesTheVariables) {
  Node node;
  node.environment().sha256.clear();
  const auto refused = node.start();
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text(), HasSubstr("NVIDIA_DRIVER_SHA256"));
  EXPECT_THAT(refused.error().text(), HasSubstr("NVIDIA_DRIVER_TRUST_DOWNLOAD_WITHOUT_DIGEST"));
  EXPECT_THAT(node.log(), Not(HasSubstr("Downloading")));
  node.environment().trust_download_without_digest = true;
  node.expect_start();
  EXPECT_THAT(node.log(), HasSubstr("Downloading Nvidia installer... DONE."));
}

TEST(GoogleInstaller, UsesAnArchiveThatIsInTheDirectory) {
  Node node;
  const auto name = archive_name(node.environment());
  const auto path = fmt::format("{}/{}", kDirectory, name);
  node.machine().tree().file(path, node.machine().server[kArchiveUrl]);
  node.environment().sha256.clear();  // it comes from the machine
  node.expect_start();
  EXPECT_THAT(node.log(),
              HasSubstr(fmt::format("Downloading Nvidia installer...\n"
                                    "Using the existing \"{}\"\n"
                                    "set NVIDIA_INSTALLER_OVERWRITE=1 to replace it with a fresh "
                                    "copy\nRunning Nvidia installer...\n",
                                    name)));
  EXPECT_TRUE(node.machine().host().exists(path)) << "it is not ours";
  Node fresh;
  fresh.machine().tree().file(path, "damaged");
  fresh.environment().overwrite = true;
  fresh.expect_start();
  EXPECT_THAT(fresh.log(), HasSubstr("Downloading Nvidia installer... DONE."));
}

TEST(GoogleInstaller, ADriverThatDoesNotAnswerIsNotVerified) {
  Node node;
  node.machine().smi_fails = true;
  EXPECT_FALSE(node.start().ok());
  EXPECT_THAT(node.log(), HasSubstr("Verifying Nvidia installation...\n"));
  EXPECT_THAT(node.log(), Not(HasSubstr("Verifying Nvidia installation... DONE.")));
  EXPECT_EQ(node.machine().loaded(), "");
  EXPECT_EQ(node.cache(), "");
}

TEST(GoogleInstaller, SaysNothingIsDoneWithoutALoaderCache) {
  Node node;
  node.machine().tree().remove("sbin/ldconfig").remove("etc/ld.so.cache");
  node.machine().script.rule = [](const std::string& entry) -> Status {
    if (entry != "run ldconfig") return {};
    return Error(Errc::NotFound, "there is no ldconfig");
  };
  node.expect_start();
  EXPECT_TRUE(
      node.log().ends_with("Verifying Nvidia installation... DONE.\nUpdating host's ld cache...\n"))
      << node.log();
}

TEST(GoogleInstaller, FetchesHeadersThatAreMissing) {
  Node node;
  const auto headers = fmt::format("usr/src/linux-headers-{}", kSetupKernel);
  std::vector<std::string> fetched;
  node.fetch_headers = [&](const std::string& kernel) -> Status {
    fetched.push_back(kernel);
    return Error(Errc::NotFound, "no network");
  };
  node.expect_start();
  EXPECT_THAT(fetched, IsEmpty()) << "the machine has them";
  expect_removed(node);
  node.machine().tree().remove(headers).remove(fmt::format("lib/modules/{}", kSetupKernel));
  EXPECT_FALSE(node.start().ok());
  EXPECT_THAT(node.log(), HasSubstr("Downloading kernel sources...\n"
                                    "Configuring installation directories...\n"));
  EXPECT_THAT(fetched, ElementsAre(kSetupKernel));
  node.fetch_headers = [&](const std::string& kernel) -> Status {
    node.machine().kernel(kernel);
    return {};
  };
  node.expect_start();
  EXPECT_THAT(node.log(), HasSubstr("Downloading kernel sources... DONE.\n"));
  EXPECT_TRUE(node.log().ends_with(kEndOfSeed003)) << node.log();
}

TEST(HeadersByApt, AreForAPodWhoseImageHasApt) {
  test::Tree machine, image;
  EXPECT_FALSE(headers_by_apt(machine.host(), image.host(), -1));
  image.file("usr/bin/apt-get");
  const auto tree = image.host();
  EXPECT_TRUE(headers_by_apt(machine.host(), tree, -1));
  EXPECT_FALSE(headers_by_apt(*sys::Host::at("/"), tree, -1)) << "a person installs them there";
}

TEST(GoogleInstaller, AnotherKernelIsRefused) {
  Node node;
  node.environment().kernel = "5.4.0-66-generic";
  const auto refused = node.start();
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text(), HasSubstr("gantry driver build --kernel 5.4.0-66-generic"));
}

// Google's own directories, with the cache file that says so.
void add_googles(SetupMachine& machine) {
  machine.tree().file(fmt::format("{}/lib64/libcuda.so.1", kDirectory), "google's");
  machine.tree().file(kCachePath, cache_of(kOldDriver));
}

TEST(GoogleCache, OfGooglesInstallerIsNotUsedAndIsRestored) {
  Node node;
  add_googles(node.machine());
  const auto before = node.machine().files();
  node.expect_start();
  EXPECT_THAT(node.log(), HasSubstr("Cache file /usr/local/nvidia/.cache found but existing "
                                    "versions didn't match.\n"));
  EXPECT_EQ(node.cache(), cache_of(kOldDriver));
  expect_removed(node);
  auto after = node.machine().files();
  for (const auto& [path, content] : before) {
    EXPECT_EQ(after[path], content) << path;
    after.erase(path);
  }
  EXPECT_THAT(after, IsEmpty());
}

TEST(GoogleCache, StaysTrueAfterAnUpgradeByAnotherName) {
  Node node;
  node.expect_start();
  node.machine().smi_table.clear();
  auto request = node.machine().request(kNewDriver);
  request.directory = kDirectory;
  driver_setup::expect_ok(node.machine().install(request));
  EXPECT_EQ(node.cache(), cache_of(kNewDriver));
  node.machine().smi_fails = true;
  request = node.machine().request(kOldDriver);
  request.directory = kDirectory;
  EXPECT_FALSE(node.machine().install(request).ok());
  EXPECT_EQ(node.cache(), cache_of(kNewDriver)) << "the new driver is back";
}

TEST(GoogleCache, IsNotWrittenByGantryDriverInstall) {
  SetupMachine machine;
  driver_setup::expect_ok(machine.install(kNewDriver));
  EXPECT_FALSE(machine.host().exists("/usr/local/nvidia/.cache"));
}

// The numbers of the effects at Google's cache file, and of the ones after them. The others are in
// the tests of src/install/driver_setup.
std::vector<int> effects_at_cache() {
  Node node;
  add_googles(node.machine());
  node.expect_start();
  std::vector<int> found;
  const auto& log = node.machine().script.log;
  for (std::size_t i = 0; i < log.size(); ++i) {
    if (!contains(log[i], kCachePath)) continue;
    found.push_back(static_cast<int>(i) + 1);
    found.push_back(static_cast<int>(i) + 2);
  }
  return found;
}

TEST(GoogleCache, IsWrittenAndRestoredAfterAKill) {
  const auto effects = effects_at_cache();
  EXPECT_EQ(effects.size(), 4U) << "moved aside, and written";
  for (const int effect : effects) {
    Node node;
    add_googles(node.machine());
    node.machine().script = {.fault_at = effect, .fault = driver_setup::Fault::KillAfter};
    EXPECT_THROW(static_cast<void>(node.start().ok()), driver_setup::KilledForTest);
    SCOPED_TRACE(fmt::format("effect {}: {}", effect, node.machine().script.log.back()));
    node.machine().script = {};
    node.expect_start();
    EXPECT_TRUE(node.log().ends_with(kEndOfSeed003)) << node.log();
    EXPECT_EQ(node.cache(), cache_of(kOldDriver));
    expect_removed(node);
    EXPECT_EQ(node.cache(), cache_of(kOldDriver)) << "Google's";
    EXPECT_EQ(*node.machine().host().read(fmt::format("{}/lib64/libcuda.so.1", kDirectory)),
              "google's");
  }
}

}  // namespace
}  // namespace gantry::google_installer
