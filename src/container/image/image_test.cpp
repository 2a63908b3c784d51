// SPDX-License-Identifier: Apache-2.0
#include "container/image/image.hpp"

#include "container/image/archive_for_test.hpp"
#include "gpu/loader/elf.hpp"
#include "support/elf_image.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::image {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kTorch = "usr/lib/python3/dist-packages/torch/version.py";

class ImageTest : public testing::Test {
 protected:
  Result<Image> opened(std::string_view bytes, const ReadLimits& limits = {}) {
    tree_.file("image.tar", bytes);
    return open_image(tree_.path("image.tar"), limits);
  }
  // The files of an image with these layers.
  std::shared_ptr<const RootFiles> files(const std::vector<std::string>& layers) {
    auto image = opened(docker_archive(layers));
    EXPECT_TRUE(image.ok()) << image.error().text();
    return image.ok() ? image->files : nullptr;
  }
  std::string error_of(std::string_view bytes, const ReadLimits& limits = {}) {
    const auto image = opened(bytes, limits);
    return image.ok() ? "no error" : image.error().text();
  }

  test::Tree tree_;
};

TEST_F(ImageTest, ADockerArchiveHasConfigurationAndFiles) {
  const auto image = opened(docker_archive(
      {TarBytes().file("bin/sh", test::elf_image({})).file(kTorch, "cuda = None\n").bytes()},
      R"({"architecture":"amd64","os":"linux","config":{"Env":["A=1","B=2"]}})"));
  ASSERT_TRUE(image.ok()) << image.error().text();
  EXPECT_EQ(image->form, "docker archive");
  EXPECT_EQ(image->config.name, "train:1");
  EXPECT_EQ(image->config.architecture, "amd64");
  EXPECT_THAT(image->config.env, ElementsAre("A=1", "B=2"));
  EXPECT_EQ(image->files->elf_machine("/bin/sh"), loader::kMachineAmd64);
  EXPECT_EQ(image->files->read(std::string("/") + kTorch, 100), "cuda = None\n");
  EXPECT_THAT(image->files->list("/"), ElementsAre("bin", "usr"));
  EXPECT_FALSE(image->files->exists("/sbin"));
}

TEST_F(ImageTest, LayersAndTheArchiveItselfMayBePacked) {
  const auto layer = gzip(TarBytes().file("a", "1").bytes());
  EXPECT_TRUE(files({layer})->exists("/a"));
  const auto image = opened(gzip(docker_archive({layer})));
  ASSERT_TRUE(image.ok()) << image.error().text();
  EXPECT_TRUE(image->files->exists("/a"));
  // A gzip file of two parts is read as one.
  const auto whole = TarBytes().file("a", "1").file("b", "2").bytes();
  EXPECT_TRUE(files({gzip(whole.substr(0, 600)) + gzip(whole.substr(600))})->exists("/b"));
}

TEST_F(ImageTest, AWhiteoutRemovesWhatIsBelow) {
  const auto below = TarBytes().file("opt/x/one").file("opt/x/two").file("opt/xy").bytes();
  const auto removed = files({below, TarBytes().file("opt/.wh.x").bytes()});
  EXPECT_THAT(removed->list("/opt"), ElementsAre("xy"));
  const auto one = files({below, TarBytes().file("opt/x/.wh.one").bytes()});
  EXPECT_THAT(one->list("/opt/x"), ElementsAre("two"));
  // Only what is below: the same layer adds its own.
  const auto opaque =
      files({below, TarBytes().file("opt/x/three").file("opt/x/.wh..wh..opq").bytes()});
  EXPECT_THAT(opaque->list("/opt/x"), ElementsAre("three"));
  const auto again = files({below, TarBytes().file("opt/.wh.x").bytes(), below});
  EXPECT_THAT(again->list("/opt/x"), ElementsAre("one", "two"));
}

TEST_F(ImageTest, AFileReplacesADirectoryAndViceVersa) {
  const auto directory = TarBytes().file("a/b").bytes();
  const auto file = TarBytes().file("a", "text").bytes();
  EXPECT_THAT(files({directory, file})->list("/a"), IsEmpty());
  EXPECT_EQ(files({directory, file})->size("/a"), 4U);
  EXPECT_THAT(files({file, directory})->list("/a"), ElementsAre("b"));
}

TEST_F(ImageTest, LinksAreFollowedInTheImage) {
  const auto found = files({TarBytes()
                                .directory("usr/lib")
                                .symlink("lib", "usr/lib")
                                .symlink("up", "../../../../etc/passwd")
                                .symlink("round", "round")
                                .file("usr/lib/libcuda.so.550.54.14", "elf")
                                .symlink("usr/lib/libcuda.so.1", "libcuda.so.550.54.14")
                                .hard_link("usr/lib/again", "usr/lib/libcuda.so.550.54.14")
                                .bytes(),
                            // A layer's names go through the links of those below it.
                            TarBytes().file("lib/new", "12").bytes()});
  EXPECT_EQ(found->size("/lib/libcuda.so.1"), 3U);
  EXPECT_EQ(found->size("/usr/lib/again"), 3U);
  EXPECT_EQ(found->size("/usr/lib/new"), 2U);
  EXPECT_FALSE(found->exists("/up"));
  EXPECT_FALSE(found->exists("/round"));
}

TEST_F(ImageTest, NamesThatLeadOutAreLeftOut) {
  const auto found =
      files({TarBytes().file("../../etc/evil").file("/abs").file("a/../../b").bytes()});
  EXPECT_THAT(found->list("/"), ElementsAre("abs"));
}

TEST_F(ImageTest, NamesBetweenADirectoryAndItsContentAreListedOnce) {
  EXPECT_THAT(files({TarBytes().directory("a").file("a.b").file("a/x").bytes()})->list("/"),
              ElementsAre("a", "a.b"));
}

TEST_F(ImageTest, OfAnOciArchiveItTakesThisMachinesImage) {
  const auto image = opened(oci_archive({{"s390x", {TarBytes().file("other").bytes()}},
                                         {"amd64", {TarBytes().file("own").bytes()}}}));
  ASSERT_TRUE(image.ok()) << image.error().text();
  EXPECT_EQ(image->form, "OCI layout");
  EXPECT_EQ(image->config.architecture, "amd64");
  EXPECT_TRUE(image->files->exists("/own"));
  EXPECT_THAT(image->config.notes, ElementsAre(HasSubstr("2 images")));
}

TEST_F(ImageTest, AnOciLayoutIsADirectory) {
  tree_.file("oci/index.json", R"({"manifests":[{"digest":"sha256:m"}]})")
      .file("oci/blobs/sha256/m",
            R"({"config":{"digest":"sha256:c"},"layers":[{"digest":"sha256:l"}]})")
      .file("oci/blobs/sha256/c", R"({"architecture":"arm64"})")
      .file("oci/blobs/sha256/l", gzip(TarBytes().file("a").bytes()))
      .link("oci/blobs/sha256/out", "/etc/passwd");
  const auto image = open_image(tree_.path("oci"));
  ASSERT_TRUE(image.ok()) << image.error().text();
  EXPECT_EQ(image->config.architecture, "arm64");
  EXPECT_TRUE(image->files->exists("/a"));
}

TEST_F(ImageTest, ADirectoryOfFilesIsAnImageWithoutConfiguration) {
  tree_.file("root/etc/os-release", "ID=debian\n");
  const auto image = open_image(tree_.path("root"));
  ASSERT_TRUE(image.ok()) << image.error().text();
  EXPECT_EQ(image->form, "directory");
  EXPECT_FALSE(image->has_config);
  EXPECT_EQ(image->files->size("/etc/os-release"), 10U);
}

TEST_F(ImageTest, WhatIsNoImageIsNamedWithWhatHelps) {
  EXPECT_THAT(error_of("just text"), HasSubstr("docker save IMAGE"));
  EXPECT_THAT(error_of(""), HasSubstr("not an archive of an image"));
  EXPECT_THAT(error_of(TarBytes().file("etc/passwd", "root").bytes()),
              HasSubstr("neither manifest.json nor index.json"));
  EXPECT_THAT(error_of("\x28\xb5\x2f\xfd..."), HasSubstr("zstd -d FILE"));
  EXPECT_THAT(open_image(tree_.path("nothing")).error().text(), HasSubstr("No such file"));
  EXPECT_THAT(open_image("/dev/zero").error().text(), HasSubstr("neither a directory nor a file"));
}

TEST_F(ImageTest, ALayerThatIsMissingDamagedOrPackedOtherwiseIsNamed) {
  const auto good = docker_archive({TarBytes().file("a").bytes()});
  EXPECT_THAT(error_of(docker_archive({"\x28\xb5\x2f\xfd zstd"})),
              HasSubstr("layer 0/layer.tar: a layer is packed by zstd"));
  const auto packed = gzip(TarBytes().file("a", "text").bytes());
  EXPECT_THAT(error_of(docker_archive({packed.substr(0, packed.size() / 2)})),
              HasSubstr("layer 0/layer.tar: what gzip packed is not complete"));
  auto damaged = packed;
  damaged[damaged.size() / 2] ^= 0x55;
  EXPECT_THAT(error_of(docker_archive({damaged})), HasSubstr("layer 0/layer.tar: "));
  EXPECT_THAT(error_of(TarBytes()
                           .file("config.json", "{}")
                           .file("manifest.json",
                                 R"([{"Config":"config.json","Layers":["gone/layer.tar"]}])")
                           .bytes()),
              HasSubstr("layer gone/layer.tar is missing; the archive is not complete"));
  EXPECT_THAT(error_of(good.substr(0, 1300)), HasSubstr("ends in the middle"));
}

TEST_F(ImageTest, ManifestsOfStrangersAreCorrupt) {
  const auto manifest = [](std::string_view text) {
    return TarBytes().file("config.json", "{}").file("manifest.json", text).bytes();
  };
  EXPECT_THAT(error_of(manifest("[]")), HasSubstr("names no image"));
  EXPECT_THAT(error_of(manifest("[{]")), HasSubstr("manifest.json"));
  EXPECT_THAT(error_of(manifest(R"([{"Config":"../../etc/passwd"}])")),
              HasSubstr("../../etc/passwd is missing"));
  const auto index = [](std::string_view text) {
    return TarBytes().file("index.json", text).file("blobs/sha256/i", text).bytes();
  };
  EXPECT_THAT(error_of(index(R"({"manifests":[{"digest":"sha256:../../x"}]})")),
              HasSubstr("is not a digest"));
  EXPECT_THAT(error_of(index(
                  R"({"manifests":[{"mediaType":"x.image.index.v1+json","digest":"sha256:i"}]})")),
              HasSubstr("name each other"));
}

TEST_F(ImageTest, EqualLayersThatDockerSharesByLinksAreFound) {
  const auto image =
      opened(TarBytes()
                 .file("one/layer.tar", TarBytes().file("a").bytes())
                 .symlink("two/layer.tar", "../one/layer.tar")
                 .file("config.json", "{}")
                 .file("manifest.json",
                       R"([{"Config":"config.json","Layers":["one/layer.tar","two/layer.tar"]}])")
                 .bytes());
  ASSERT_TRUE(image.ok()) << image.error().text();
  EXPECT_TRUE(image->files->exists("/a"));
}

TEST_F(ImageTest, HugeArchivesEndAtALimit) {
  const auto bomb =
      docker_archive({gzip(TarBytes().file("a", std::string(4U << 20U, '\0')).bytes())});
  EXPECT_THAT(error_of(bomb, {.ratio_from = 1U << 20U}), HasSubstr("made to fill a disk"));
  EXPECT_THAT(error_of(bomb, {.bytes = 1U << 20U}), HasSubstr("unpacks to more than 1.0 MiB"));
  TarBytes many;
  for (int i = 0; i < 20; ++i) many.file(fmt::format("file{}", i));
  EXPECT_THAT(error_of(docker_archive({many.bytes()}), {.entries = 10}),
              HasSubstr("more than 10 files"));
  EXPECT_THAT(error_of(docker_archive({many.bytes()}), {.name_bytes = 50}), HasSubstr("names"));
  EXPECT_THAT(error_of(many.bytes(), {.parts = 10}), HasSubstr("more than 10 files"));
  // Files that were not kept count as unknown.
  const auto full =
      opened(docker_archive({TarBytes().file(kTorch, "cuda = None").bytes()}), {.kept_bytes = 4});
  ASSERT_TRUE(full.ok());
  EXPECT_FALSE(full->files->read(std::string("/") + kTorch, 100));
}

}  // namespace
}  // namespace gantry::image
