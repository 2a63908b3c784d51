// SPDX-License-Identifier: Apache-2.0
#include "install/google_installer/environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace gantry::google_installer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kUrl =
    "https://us.download.nvidia.com/XFree86/Linux-x86_64/460.56/NVIDIA-Linux-x86_64-460.56.run";

Result<Environment> read(const std::map<std::string, std::string>& variables) {
  return read_environment([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  });
}

std::string refusal(const std::map<std::string, std::string>& variables) {
  const auto environment = read(variables);
  return environment.ok() ? "accepted" : environment.error().text();
}

TEST(GoogleEnvironment, HasGooglesDefaults) {
  EXPECT_EQ(*read({}), (Environment{.host_directory = "/var/lib/nvidia",
                                    .container_directory = "/usr/local/nvidia",
                                    .root = "/root"}));
  EXPECT_EQ(read({})->cache_file(), "/usr/local/nvidia/.cache");
}

TEST(GoogleEnvironment, TakesTheVariablesOfAManifest) {
  const auto digest = std::string(64, 'a');
  EXPECT_EQ(*read({{"NVIDIA_DRIVER_VERSION", "460.56"},
                   {"NVIDIA_DRIVER_DOWNLOAD_URL", kUrl},
                   {"NVIDIA_INSTALL_DIR_HOST", "/home/kubernetes/bin/nvidia/"},
                   {"NVIDIA_INSTALL_DIR_CONTAINER", "/opt/nvidia"},
                   {"ROOT_MOUNT_DIR", "/host"},
                   {"CACHE_FILE", "/opt/nvidia/.cache"},
                   {"KERNEL_VERSION", "5.4.0-66-generic"},
                   {"NVIDIA_INSTALLER_OVERWRITE", "1"},
                   {"NVIDIA_DRIVER_SHA256", digest},
                   {"NVIDIA_DRIVER_TRUST_DOWNLOAD_WITHOUT_DIGEST", "true"}}),
            (Environment{.version = "460.56",
                         .url = kUrl,
                         .host_directory = "/home/kubernetes/bin/nvidia",
                         .container_directory = "/opt/nvidia",
                         .root = "/host",
                         .kernel = "5.4.0-66-generic",
                         .overwrite = true,
                         .sha256 = digest,
                         .trust_download_without_digest = true}));
}

TEST(GoogleEnvironment, OnTheMachineItselfTheDirectoryIsWhereItIs) {
  EXPECT_EQ(read({{"ROOT_MOUNT_DIR", "/"}})->cache_file(), "/var/lib/nvidia/.cache");
}

TEST(GoogleEnvironment, RefusesWhatCannotBeMeantAndNamesTheVariable) {
  EXPECT_THAT(refusal({{"NVIDIA_DRIVER_VERSION", "latest"}}),
              AllOf(HasSubstr("NVIDIA_DRIVER_VERSION=`latest`"), HasSubstr("580.159.04")));
  EXPECT_THAT(refusal({{"NVIDIA_INSTALL_DIR_HOST", "var/lib"}}),
              HasSubstr("NVIDIA_INSTALL_DIR_HOST=`var/lib`"));
  EXPECT_THAT(refusal({{"ROOT_MOUNT_DIR", "/root/../etc"}}), HasSubstr("without `..`"));
  EXPECT_THAT(refusal({{"CACHE_FILE", "/tmp/cache"}}),
              HasSubstr("it is always /usr/local/nvidia/.cache"));
  EXPECT_THAT(refusal({{"NVIDIA_DRIVER_SHA256", "beef"}}), HasSubstr("NVIDIA_DRIVER_SHA256"));
  EXPECT_THAT(refusal({{"NVIDIA_DRIVER_TRUST_DOWNLOAD_WITHOUT_DIGEST", "perhaps"}}),
              HasSubstr("`true` or `false`"));
}

TEST(GoogleEnvironment, FillsWhatFlagsLeaveOpen) {
  const auto environment =
      *read({{"NVIDIA_DRIVER_VERSION", "460.56"}, {"NVIDIA_DRIVER_DOWNLOAD_URL", kUrl}});
  preflight::DriverRequest empty;
  EXPECT_TRUE(complete(empty, environment).ok());
  EXPECT_EQ(empty.version, "460.56");
  EXPECT_EQ(empty.url, kUrl);
  EXPECT_TRUE(empty.as_google);
  preflight::DriverRequest flags{.version = "535.54.03", .run_file = "/x.run"};
  EXPECT_TRUE(complete(flags, environment).ok());
  EXPECT_EQ(flags.version, "535.54.03");
  EXPECT_EQ(flags.run_file, "/x.run");
  EXPECT_EQ(flags.url, "") << "two archives would be refused";
}

// The pod sees the machine below ROOT_MOUNT_DIR, and the driver's directory at a place of its own.
TEST(GoogleEnvironment, AFileUrlIsAPathOnTheMachine) {
  const auto path_of = [](const std::string& url) {
    preflight::DriverRequest request;
    const auto done = complete(request, *read({{"NVIDIA_DRIVER_DOWNLOAD_URL", url}}));
    return done.ok() ? request.run_file : done.error().text();
  };
  EXPECT_EQ(path_of("file:///root/srv/driver.run"), "/srv/driver.run");
  EXPECT_EQ(path_of("file:///usr/local/nvidia/driver.run"), "/var/lib/nvidia/driver.run");
  EXPECT_THAT(path_of("file:///tmp/driver.run"), HasSubstr("below /root or /usr/local/nvidia"));
  EXPECT_THAT(path_of("file://server/driver.run"), HasSubstr("write file:///PATH"));
}

}  // namespace
}  // namespace gantry::google_installer
