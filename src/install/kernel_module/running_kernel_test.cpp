// SPDX-License-Identifier: Apache-2.0
#include "install/kernel_module/running_kernel.hpp"

#include "support/tree.hpp"

#include <gmock/gmock.h>

namespace gantry::kernel_module {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Banner {
  std::string_view text;
  std::optional<int> gcc, clang;
};

TEST(RunningKernel, KnowsTheCompilerOfEveryDistribution) {
  const std::vector<Banner> table{
      {"Linux version 6.1.0-21-amd64 (debian-kernel@lists.debian.org) (gcc-12 (Debian 12.2.0-14) "
       "12.2.0, GNU ld (GNU Binutils for Debian) 2.40) #1 SMP PREEMPT_DYNAMIC Debian 6.1.90-1",
       12,
       {}},
      {"Linux version 5.15.0-122-generic (buildd@lcy02-amd64-034) (gcc (Ubuntu "
       "11.4.0-1ubuntu1~22.04) 11.4.0, GNU ld (GNU Binutils for Ubuntu) 2.38) #132-Ubuntu SMP",
       11,
       {}},
      {"Linux version 6.8.0-31-generic (buildd@x) (x86_64-linux-gnu-gcc-13 (Ubuntu "
       "13.2.0-23ubuntu4) 13.2.0, GNU ld (GNU Binutils for Ubuntu) 2.42) #31-Ubuntu SMP",
       13,
       {}},
      {"Linux version 4.19.0-26-amd64 (debian-kernel@lists.debian.org) (gcc version 8.3.0 (Debian "
       "8.3.0-6)) #1 SMP Debian 4.19.304-1",
       8,
       {}},
      {"Linux version 5.14.0-427.el9.x86_64 (mockbuild@x.example) (gcc (GCC) 11.4.1 20231218 (Red "
       "Hat 11.4.1-3), GNU ld version 2.35.2-43.el9) #1 SMP PREEMPT_DYNAMIC",
       11,
       {}},
      {"Linux version 5.14.21-150500.55-default (geeko@buildhost) (gcc (SUSE Linux) 7.5.0, GNU ld "
       "(GNU Binutils; SUSE Linux Enterprise 15) 2.41) #1 SMP",
       7,
       {}},
      {"Linux version 6.6.30 (a@b) (Example clang version 17.0.6 (https://x), LLD 17.0.6) #1 SMP",
       {},
       17},
      {"Linux version 6.6.30 (gcc-builder@host (x)) (gcc (GCC) 9.1.0) #1", 9, {}},
      {"Linux version 6.6.30 (a@b) (tcc 0.9) #1", {}, {}},
      {"Linux version 6.6.30 (a@b", {}, {}},
      {"", {}, {}}};
  for (const auto& banner : table) {
    const auto kernel = parse_running_kernel(banner.text, "");
    EXPECT_EQ(kernel.gcc_major, banner.gcc) << banner.text;
    EXPECT_EQ(kernel.clang_major, banner.clang) << banner.text;
  }
}

TEST(RunningKernel, HasItsRelease) {
  EXPECT_EQ(parse_running_kernel("Linux version 6.6.30 (a@b) (gcc (GCC) 9.1.0) #1", "").release,
            "6.6.30");
  test::Tree tree;
  tree.file("proc/version", "Linux version 6.6.30 (a@b) (gcc (GCC) 9.1.0) #1\n")
      .file("proc/sys/kernel/osrelease", "6.6.30-custom\n");
  const auto kernel = read_running_kernel(tree.host());
  ASSERT_TRUE(kernel.ok()) << kernel.error().text();
  EXPECT_EQ(kernel->release, "6.6.30-custom");
  EXPECT_EQ(kernel->version_text, "Linux version 6.6.30 (a@b) (gcc (GCC) 9.1.0) #1");
}

TEST(RunningKernel, RefusesAReleaseThatIsAPath) {
  test::Tree tree;
  tree.file("proc/version", "Linux version ../../etc (a@b)\n");
  EXPECT_EQ(read_running_kernel(tree.host()).error().code(), Errc::Corrupt);
}

TEST(CompilerMajor, ReadsTheOutputOfTheCompiler) {
  EXPECT_EQ(compiler_major("gcc (Debian 12.2.0-14) 12.2.0\nCopyright"), 12);
  EXPECT_EQ(compiler_major("cc (GCC) 13.2.1 20231011 (Red Hat 13.2.1-4)"), 13);
  EXPECT_EQ(compiler_major("Debian clang version 14.0.6\nTarget: x"), 14);
  EXPECT_EQ(compiler_major("gcc: command not found"), std::nullopt);
  EXPECT_EQ(compiler_major("gcc ((("), std::nullopt);
}

// Debian's: the configuration in one directory, the makefiles by a link.
test::Tree& debian(test::Tree& tree, const std::string& release) {
  const auto headers = "usr/src/linux-headers-" + release;
  tree.link("lib/modules/" + release + "/build", "/" + headers)
      .file(headers + "/include/generated/utsrelease.h",
            "#define UTS_RELEASE \"" + release + "\"\n")
      .file("usr/lib/linux-kbuild-6.1/scripts/Makefile.build")
      .link(headers + "/scripts", "/usr/lib/linux-kbuild-6.1/scripts")
      .file(headers + "/Module.symvers");
  return tree;
}

TEST(KernelHeaders, AreFoundThroughTheLinkOfTheModules) {
  test::Tree tree;
  debian(tree, "6.1.0-21-amd64");
  const auto headers = find_kernel_headers(tree.host(), "6.1.0-21-amd64");
  ASSERT_TRUE(headers.ok()) << headers.error().text();
  EXPECT_EQ(*headers, (KernelBuildDir{.directory = "/usr/src/linux-headers-6.1.0-21-amd64",
                                      .source = "/usr/src/linux-headers-6.1.0-21-amd64",
                                      .release = "6.1.0-21-amd64",
                                      .has_scripts = true,
                                      .has_symbol_versions = true}));
}

TEST(KernelHeaders, SayWhichCompilerBuiltTheirKernel) {
  test::Tree tree;
  debian(tree, "6.1.0-22-amd64");
  const std::string configuration = "usr/src/linux-headers-6.1.0-22-amd64/include/config/auto.conf";
  tree.file(configuration, "CONFIG_CC_IS_GCC=y\nCONFIG_GCC_VERSION=120200\n");
  EXPECT_EQ(find_kernel_headers(tree.host(), "6.1.0-22-amd64")->gcc_major, 12);
  for (const auto* other : {"CONFIG_GCC_VERSION=0\n", "CONFIG_GCC_VERSION=x\n", ""}) {
    tree.file(configuration, other);
    EXPECT_EQ(find_kernel_headers(tree.host(), "6.1.0-22-amd64")->gcc_major, std::nullopt);
  }
}

TEST(KernelHeaders, SayWhetherClangAndItsLinkerBuiltTheirKernel) {
  test::Tree tree;
  debian(tree, "6.1.0-22-amd64");
  tree.file("usr/src/linux-headers-6.1.0-22-amd64/include/config/auto.conf",
            "CONFIG_CC_IS_CLANG=y\nCONFIG_GCC_VERSION=0\nCONFIG_CLANG_VERSION=170006\n"
            "CONFIG_LD_IS_LLD=y\nCONFIG_LTO_CLANG=y\n");
  const auto headers = find_kernel_headers(tree.host(), "6.1.0-22-amd64");
  ASSERT_TRUE(headers.ok());
  const auto kernel = with_compiler_of({.release = "6.1.0-21-amd64", .gcc_major = 12}, *headers);
  EXPECT_EQ(kernel.gcc_major, std::nullopt);
  EXPECT_EQ(kernel.clang_major, 17);
  EXPECT_TRUE(kernel.uses_lld);
  EXPECT_EQ(with_compiler_of({.gcc_major = 12}, {}).gcc_major, 12);
}

TEST(KernelHeaders, MayHaveTheirMakefilesInAnotherDirectory) {
  test::Tree tree;
  const std::string release = "5.14.21-150500.55-default";
  tree.link("lib/modules/" + release + "/build", "/usr/src/linux-obj/x86_64/default")
      .link("lib/modules/" + release + "/source", "/usr/src/linux-5.14.21")
      .file("usr/src/linux-obj/x86_64/default/include/generated/utsrelease.h",
            "#define UTS_RELEASE \"" + release + "\"\n")
      .file("usr/src/linux-5.14.21/scripts/Makefile.build");
  const auto headers = find_kernel_headers(tree.host(), release);
  ASSERT_TRUE(headers.ok()) << headers.error().text();
  EXPECT_EQ(headers->directory, "/usr/src/linux-obj/x86_64/default");
  EXPECT_EQ(headers->source, "/usr/src/linux-5.14.21");
}

TEST(KernelHeaders, WithoutTheLinkTheirUsualDirectoryCounts) {
  test::Tree tree;
  tree.file("usr/src/kernels/5.14.0/include/config/kernel.release", "5.14.0\n")
      .file("usr/src/kernels/5.14.0/scripts/Makefile.build");
  EXPECT_EQ(find_kernel_headers(tree.host(), "5.14.0")->directory, "/usr/src/kernels/5.14.0");
}

TEST(KernelHeaders, MissingOnesAreReportedWithThePackage) {
  test::Tree tree;
  tree.link("lib/modules/6.1.0-21-amd64/build", "/usr/src/linux-headers-6.1.0-21-amd64")
      .file("usr/bin/apt-get");
  const auto missing = find_kernel_headers(tree.host(), "6.1.0-21-amd64");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code(), Errc::NotFound);
  EXPECT_THAT(missing.error().cause(), HasSubstr("points to /usr/src/linux-headers-6.1.0-21-amd64, "
                                                 "which does not exist"));
  EXPECT_THAT(missing.error().remedy(), HasSubstr("apt-get install linux-headers-6.1.0-21-amd64"));
  tree.remove("usr/bin/apt-get").file("usr/bin/zypper");
  EXPECT_THAT(find_kernel_headers(tree.host(), "5.14.21-150500.55-default").error().remedy(),
              HasSubstr("zypper install kernel-default-devel"));
  tree.remove("usr/bin/zypper").file("usr/bin/dnf");
  EXPECT_THAT(find_kernel_headers(tree.host(), "5.14.0").error().remedy(),
              HasSubstr("dnf install kernel-devel-5.14.0"));
}

TEST(KernelHeaders, OfAnotherReleaseAreRefused) {
  test::Tree tree;
  debian(tree, "6.1.0-21-amd64");
  tree.file("usr/src/linux-headers-6.1.0-21-amd64/include/generated/utsrelease.h",
            "#define UTS_RELEASE \"6.1.0-22-amd64\"\n");
  const auto other = find_kernel_headers(tree.host(), "6.1.0-21-amd64");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code(), Errc::Corrupt);
  EXPECT_THAT(other.error().text(), HasSubstr("is for kernel 6.1.0-22-amd64, not for 6.1.0-21"));
}

TEST(KernelHeaders, HalfInstalledOnesAreRefused) {
  test::Tree tree;
  tree.directory("lib/modules/6.1.0/build");
  EXPECT_THAT(find_kernel_headers(tree.host(), "6.1.0").error().text(), HasSubstr("not prepared"));
  tree.file("lib/modules/6.1.0/build/include/generated/utsrelease.h",
            "#define UTS_RELEASE \"6.1.0\"\n");
  EXPECT_THAT(find_kernel_headers(tree.host(), "6.1.0").error().text(),
              HasSubstr("scripts/Makefile.build is missing"));
  EXPECT_THAT(kernel_build_directories(tree.host(), "../6.1.0"), IsEmpty());
}

}  // namespace
}  // namespace gantry::kernel_module
