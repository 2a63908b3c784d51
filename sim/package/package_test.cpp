// SPDX-License-Identifier: Apache-2.0
#include "sim/package/package.hpp"

#include "base/core/text.hpp"
#include "base/sys/child.hpp"
#include "sim/package/package_content.hpp"
#include "sim/package/run_archive.hpp"
#include "sim/package/source_tree.hpp"
#include "support/paths.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string run(const std::vector<std::string>& command) {
  const auto done = sys::run_command(command, std::chrono::seconds(30));
  return done.ok() ? done->output : done.error().text();
}

TEST(PackageDriver, IsFoundByVersionAndByBranch) {
  EXPECT_EQ(find_package_driver("580")->version, "580.159.04");
  EXPECT_EQ(find_package_driver("460.91.03")->version, "460.91.03");
  EXPECT_EQ(find_package_driver("460.56")->build, "Tue Feb 23 23:31:16 UTC 2021");
  EXPECT_EQ(package_name(*find_package_driver("430.26")), "NVIDIA-Linux-x86_64-430.26");
}

TEST(PackageDriver, DiffersAsTheBranchesDo) {
  const auto old = *find_package_driver("460.56");
  EXPECT_FALSE(old.open);
  EXPECT_TRUE(old.needs_same_compiler);
  EXPECT_THAT(old.modules, ElementsAre("nvidia", "nvidia-uvm", "nvidia-modeset", "nvidia-drm"));
  const auto later = *find_package_driver("535.261.03");
  EXPECT_TRUE(later.open);
  EXPECT_FALSE(later.needs_same_compiler);
  EXPECT_EQ(later.modules.back(), "nvidia-peermem");
}

TEST(PackageDriver, RefusesWhatIsNotAVersionOfAKnownBranch) {
  for (const auto* wrong : {"", "580.", ".", "580.1.2.3", "580\n", "../580", "v580", "5 80"})
    EXPECT_EQ(find_package_driver(wrong).error().code(), Errc::Invalid) << wrong;
  const auto unknown = find_package_driver("999.1");
  EXPECT_EQ(unknown.error().code(), Errc::NotFound);
  EXPECT_THAT(unknown.error().text(), HasSubstr("there are 384, 430, 460, 535, 550, 580"));
}

TEST(RunArchive, SumsAsThePrograms) {
  test::Tree tree;
  for (const std::string& text : {std::string(), std::string("a"), std::string(70'000, 'x')}) {
    tree.file("sum", text);
    EXPECT_THAT(run({"cksum", tree.path("sum")}),
                StartsWith(std::to_string(posix_checksum(text)) + " "));
    EXPECT_THAT(run({"md5sum", tree.path("sum")}), StartsWith(md5_of(text) + " "));
    tree.file("packed.gz", gzip(text));
    EXPECT_EQ(run({"gzip", "-cd", tree.path("packed.gz")}), text);
  }
}

TEST(RunArchive, NamesTheLineAtWhichTheArchiveBegins) {
  const auto bytes = run_archive("#! /bin/sh\nCRCsum=@CRC@\nMD5=@MD5@\nskip=@SKIP@\nexit\n",
                                 {{.name = "a", .content = "hello\n"}});
  test::Tree tree;
  tree.file("x.run", bytes);
  EXPECT_THAT(bytes, HasSubstr("\nskip=6\n"));
  const auto summed = bytes.substr(bytes.find("skip="));
  EXPECT_THAT(bytes, StartsWith("#! /bin/sh\nCRCsum=" + std::to_string(posix_checksum(summed)) +
                                "\nMD5=" + md5_of(summed) + "\n"));
  EXPECT_EQ(run({"sh", "-c", "tail -n +6 \"$0\" | gzip -cd | tar xOf - a", tree.path("x.run")}),
            "hello\n");
}

TEST(PackageContent, WritesTheManifestWithTheFiles) {
  PackageContent content;
  content.add("nvidia-modprobe", "x", 04755, "NVIDIA_MODPROBE /usr/bin/ MODULE:installer");
  content.add("./32/libcuda.so.460.56", "x", 0755, "CUDA_LIB COMPAT32 / MODULE:gpgpu");
  content.add_link("libcuda.so.1", "CUDA_SYMLINK NATIVE / libcuda.so.460.56 MODULE:gpgpu");
  const auto files = content.files(*find_package_driver("460.56"));
  ASSERT_EQ(files.size(), 4U);
  EXPECT_EQ(files[0].name, ".manifest");
  EXPECT_EQ(files[0].content,
            "NVIDIA Accelerated Graphics Driver for Linux-x86_64\n460.56\n \n"
            "nvidia nvidia-uvm nvidia-modeset nvidia-drm\n \n \n \n \n"
            "nvidia-modprobe 4755 NVIDIA_MODPROBE /usr/bin/ MODULE:installer\n"
            "./32/libcuda.so.460.56 0755 CUDA_LIB COMPAT32 / MODULE:gpgpu\n"
            "libcuda.so.1 0000 CUDA_SYMLINK NATIVE / libcuda.so.460.56 MODULE:gpgpu\n");
  EXPECT_EQ(files[1].name, "32/");
  EXPECT_EQ(files[2].name, "32/libcuda.so.460.56");
  EXPECT_EQ(files[3].mode, 0755U);  // the set-user-id bit is the installer's to set
}

TEST(SourceTree, SaysWhatIsMissing) {
  test::Tree tree;
  tree.file("sim/kernel/driver.c");
  const auto missing = find_source_tree(tree.root());
  EXPECT_EQ(missing.error().code(), Errc::NotFound);
  EXPECT_THAT(missing.error().text(), HasSubstr("it has no sim/package/files/run-header.sh"));
  EXPECT_EQ(*find_source_tree(test::source_dir()), test::source_dir());
}

TEST(DriverPackage, IsTheSameEachTime) {
  const PackageOptions options{.driver = "580.159.04",
                               .source_tree = test::source_dir(),
                               .libraries = test::built("lib/gantry/sim")};
  const auto package = make_driver_package(options);
  ASSERT_TRUE(package.ok()) << package.error().text();
  EXPECT_EQ(package->file_name, "NVIDIA-Linux-x86_64-580.159.04.run");
  EXPECT_EQ(package->bytes, make_driver_package(options)->bytes);
  EXPECT_FALSE(contains(package->bytes.substr(0, package->bytes.find("\nEND_OF_STUB\n")), "@SKIP"));
}

TEST(DriverPackage, NeedsTheSimulatedLibraries) {
  const test::Tree empty;
  const auto package = make_driver_package(
      {.driver = "580", .source_tree = test::source_dir(), .libraries = empty.root()});
  EXPECT_THAT(package.error().text(), HasSubstr("make build"));
}

}  // namespace
}  // namespace gantry::sim
