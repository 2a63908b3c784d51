// SPDX-License-Identifier: Apache-2.0
#include "install/driver_package/distribution.hpp"

#include "support/paths.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace gantry::driver_package {
namespace {

using model::ModuleFlavour;
using testing::HasSubstr;
using testing::Not;

OsRelease os(std::string id, std::string version, std::vector<std::string> like = {}) {
  return {.id = std::move(id), .version_id = std::move(version), .id_like = std::move(like)};
}

std::string whole_text(const PackagePlan& plan) {
  auto text =
      fmt::format("{} with {}\n\n{}", plan.distribution, to_string(plan.tool), to_text(plan));
  text += "\n## removal\n" + to_text(PackagePlan{.steps = plan.removal});
  text += "\n## notes\n";
  for (const auto& note : plan.notes) text += "- " + note + "\n";
  return text;
}

void expect_golden(const std::string& name, const OsRelease& release,
                   const PackageRequest& request) {
  const auto plan = plan_packages(release, request);
  ASSERT_TRUE(plan.ok()) << name << ": " << plan.error().text();
  const auto text = whole_text(*plan);
  const auto path = test::source_dir() + "/tests/golden/driver_packages/" + name;
  if (const auto* mode = std::getenv("GANTRY_GOLDEN"); mode && std::string_view(mode) == "write") {
    std::ofstream(path) << text;
    return;
  }
  std::stringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_EQ(text, golden.str()) << path << "; GANTRY_GOLDEN=write refreshes it";
}

TEST(PackagePlanGolden, Debian11) {
  expect_golden("debian11", os("debian", "11"), {.version = "470", .kernel = "5.10.0-33-amd64"});
}
TEST(PackagePlanGolden, Debian12) {
  expect_golden("debian12", os("debian", "12"), {.kernel = "6.1.0-35-amd64"});
  expect_golden("debian12-open", os("debian", "12"),
                {.version = "535", .flavour = ModuleFlavour::Open, .kernel = "6.1.0-35-amd64"});
  expect_golden("debian12-tesla", os("debian", "12"),
                {.version = "470", .kernel = "6.1.0-35-amd64"});
  expect_golden("debian12-nvidia", os("debian", "12"),
                {.version = "580.159.04", .kernel = "6.1.0-35-amd64"});
}
TEST(PackagePlanGolden, Debian13) {
  expect_golden("debian13", os("debian", "13"),
                {.version = "580",
                 .flavour = ModuleFlavour::Proprietary,
                 .kernel = "6.12.41+deb13-arm64",
                 .architecture = "aarch64"});
}
TEST(PackagePlanGolden, Ubuntu2004) {
  expect_golden("ubuntu2004", os("ubuntu", "20.04", {"debian"}),
                {.version = "460", .kernel = "5.4.0-216-generic"});
}
TEST(PackagePlanGolden, Ubuntu2204) {
  expect_golden("ubuntu2204", os("ubuntu", "22.04", {"debian"}),
                {.version = "580.159.04", .kernel = "5.15.0-140-generic"});
}
TEST(PackagePlanGolden, Ubuntu2404) {
  expect_golden(
      "ubuntu2404", os("ubuntu", "24.04", {"debian"}),
      {.version = "580", .flavour = ModuleFlavour::Proprietary, .kernel = "6.8.0-110-generic"});
}
TEST(PackagePlanGolden, Ubuntu2604) {
  expect_golden("ubuntu2604", os("ubuntu", "26.04", {"debian"}), {.kernel = "7.0.0-14-generic"});
}
TEST(PackagePlanGolden, Rhel8) {
  expect_golden("rhel8", os("rhel", "8.10", {"fedora"}),
                {.version = "535",
                 .flavour = ModuleFlavour::Proprietary,
                 .kernel = "4.18.0-553.el8_10.x86_64"});
}
TEST(PackagePlanGolden, Rocky9) {
  expect_golden("rocky9", os("rocky", "9.4", {"rhel", "centos", "fedora"}),
                {.version = "580.159.04", .kernel = "5.14.0-427.13.1.el9_4.x86_64"});
}
TEST(PackagePlanGolden, Alma10) {
  expect_golden("alma10", os("almalinux", "10.0", {"rhel", "centos", "fedora"}),
                {.version = "580", .kernel = "6.12.0-55.9.1.el10_0.x86_64"});
}
TEST(PackagePlanGolden, Fedora42) {
  expect_golden("fedora42", os("fedora", "42"),
                {.version = "580", .kernel = "6.14.0-63.fc42.x86_64"});
}
// The last release with dnf 4.
TEST(PackagePlanGolden, Fedora40) {
  expect_golden("fedora40", os("fedora", "40"),
                {.version = "580", .kernel = "6.8.5-301.fc40.x86_64"});
}
TEST(PackagePlanGolden, AmazonLinux2023) {
  expect_golden("amzn2023", os("amzn", "2023", {"fedora"}),
                {.version = "580", .kernel = "6.1.141-155.222.amzn2023.x86_64"});
}
TEST(PackagePlanGolden, AzureLinux3) {
  expect_golden("azurelinux3", os("azurelinux", "3.0"), {.kernel = "6.6.92.2-2.azl3"});
}
// The packages of the driver 430.26 on SLES 15 SP1.
TEST(PackagePlanGolden, Sles15) {
  expect_golden("sles15sp1", os("sles", "15.1", {"suse"}),
                {.version = "430", .kernel = "4.12.14-197.15-default"});
  expect_golden("sles15sp6", os("sles", "15.6", {"suse"}),
                {.version = "580.159.04", .kernel = "6.4.0-150600.23.47-default"});
}
TEST(PackagePlanGolden, Leap15) {
  expect_golden("leap15.6", os("opensuse-leap", "15.6", {"suse", "opensuse"}),
                {.version = "550", .kernel = "6.4.0-150600.23.47-default"});
}

TEST(PackagePlans, TakeAMirror) {
  const auto text = [](const OsRelease& release, const PackageRequest& request) {
    const auto plan = plan_packages(release, request);
    return plan.ok() ? whole_text(*plan) : plan.error().text();
  };
  const std::string mirror = "https://mirror.example.org/nvidia/";
  EXPECT_THAT(text(os("rhel", "9.4"), {.version = "580", .kernel = "k", .repository = mirror}),
              HasSubstr("baseurl=https://mirror.example.org/nvidia/rhel9/x86_64\n"));
  EXPECT_THAT(text(os("sles", "15.6"),
                   {.version = "470", .kernel = "k-default", .repository = "file:///srv/suse"}),
              HasSubstr("addrepo --refresh file:///srv/suse/suse/sle15sp6 nvidia"));
  EXPECT_THAT(text(os("debian", "12"), {.kernel = "k", .repository = "http://mirror/debian"}),
              HasSubstr("deb http://mirror/debian bookworm contrib"));
  for (const auto* bad : {"ftp://x", "mirror", "https://x y", "https://x'", "https://x$(id)"})
    EXPECT_THAT(text(os("rhel", "9.4"), {.kernel = "k", .repository = bad}),
                HasSubstr("is not the URL of a mirror"))
        << bad;
}

TEST(PackagePlans, DerivativesAreLikeTheirOrigins) {
  const auto distribution = [](const OsRelease& release) {
    const auto plan = plan_packages(release, {.version = "580", .kernel = "k-default"});
    return plan.ok() ? plan->distribution : plan.error().text();
  };
  EXPECT_EQ(distribution(os("centos", "9", {"rhel", "fedora"})), "rhel9");
  EXPECT_EQ(distribution(os("ol", "8.10", {"fedora"})), "rhel8");
  EXPECT_EQ(distribution(os("opensuse-leap", "15.6", {"suse", "opensuse"})), "opensuse/leap/15.6");
  EXPECT_EQ(distribution(os("opensuse-tumbleweed", "20261119", {"opensuse", "suse"})),
            "opensuse/tumbleweed");
  EXPECT_THAT(distribution(os("linuxmint", "22", {"ubuntu", "debian"})), HasSubstr("no packages"));
}

TEST(PackagePlans, SayWhatToUseWhereThereAreNone) {
  struct Case {
    OsRelease release;
    PackageRequest request;
    const char* text = nullptr;
  };
  const std::string kernel = "1-default";
  for (const auto& [release, request, text] : {
           Case{os("alpine", "3.20"), {.kernel = kernel}, "install a .run file"},
           Case{os("linux", ""), {.kernel = kernel}, "install a .run file"},
           Case{os("debian", "9"), {.kernel = kernel}, "Debian 11, 12 and 13"},
           Case{os("debian", ""), {.kernel = kernel}, "Debian 11, 12 and 13"},
           Case{os("debian", "12"), {.version = "390", .kernel = kernel}, "branch 390"},
           Case{os("ubuntu", "18.04"), {.kernel = kernel}, "20.04 to 26.04"},
           Case{os("ubuntu", "22.04"),
                {.version = "470", .flavour = ModuleFlavour::Open, .kernel = kernel},
                "has no open module"},
           Case{os("ubuntu", "22.04"), {.version = "390", .kernel = kernel}, "branch 390"},
           Case{os("rhel", "7.9"), {.kernel = kernel}, "8, 9 and 10"},
           Case{os("fedora", "rawhide"), {.kernel = kernel}, "not for this one"},
           Case{os("amzn", "2"), {.kernel = kernel}, "Amazon Linux 2023"},
           Case{os("azurelinux", "3.0"),
                {.flavour = ModuleFlavour::Proprietary, .kernel = kernel},
                "open module"},
           Case{os("mariner", "2.0"), {.kernel = kernel}, "no packages"},
           Case{os("sles", "12.5", {"suse"}), {.kernel = kernel}, "15 and 16"},
           Case{os("sles", "15.6"),
                {.version = "470", .flavour = ModuleFlavour::Open, .kernel = kernel},
                "has no open module"},
           Case{os("sles", "15.6"),
                {.version = "590", .flavour = ModuleFlavour::Proprietary, .kernel = kernel},
                "open module only"},
           Case{os("sles", "15.6"), {.kernel = "6.4.0-custom"}, "no modules for the kernel"},
           Case{os("sles", "15.6"), {.kernel = kernel, .architecture = "aarch64"}, "x86_64 only"},
       }) {
    const auto plan = plan_packages(release, request);
    ASSERT_FALSE(plan.ok()) << release.id << ' ' << release.version_id;
    EXPECT_EQ(plan.error().code(), Errc::Unsupported) << plan.error().text();
    EXPECT_THAT(plan.error().text(), HasSubstr(text));
    EXPECT_NE(plan.error().remedy(), "");
  }
}

TEST(PackagePlans, RefuseWordsThatAreNotPlain) {
  const auto release = os("rhel", "9.4");
  for (const auto* version : {"x", "580.", ".580", "580; id", "580.1.2.3", "-580", "5", "58000"})
    EXPECT_EQ(plan_packages(release, {.version = version, .kernel = "k"}).error().code(),
              Errc::Invalid)
        << version;
  for (const auto* kernel : {"", "-k", "k l", "k;id", "$(id)", "../k", "k\n"})
    EXPECT_EQ(plan_packages(release, {.kernel = kernel}).error().code(), Errc::Invalid) << kernel;
  EXPECT_EQ(plan_packages(release, {.kernel = "k", .architecture = "s390x"}).error().code(),
            Errc::Unsupported);
}

TEST(PackagePlans, KnowTheDriverInAPackagesVersion) {
  for (const auto* version : {"580.159.04", "3:580.159.04-1", "580.159.04-1~deb12u1",
                              "580.159.04_k6.4.0_150600.21-1", "580.159.04-0ubuntu0.24.04.1"})
    EXPECT_EQ(driver_version_of(version), "580.159.04") << version;
  for (const auto* other : {"", ":", "1.0-1", "6.8.0-110.110", "20240301-1", "x-580.159.04"})
    EXPECT_EQ(driver_version_of(other), "") << other;
}

TEST(PackagePlans, ATextCanBePasted) {
  const auto plan = plan_packages(os("debian", "12"), {.kernel = "6.1.0-35-amd64"});
  ASSERT_TRUE(plan.ok());
  const auto text = to_text(*plan);
  EXPECT_THAT(text, HasSubstr("cat >/etc/apt/sources.list.d/gantry-nvidia.list <<'EOF'\ndeb "));
  EXPECT_THAT(text, HasSubstr("\nenv DEBIAN_FRONTEND=noninteractive apt-get update\n"));
  EXPECT_THAT(text, Not(HasSubstr("nvidia-open-kernel-dkms")));
}

}  // namespace
}  // namespace gantry::driver_package
