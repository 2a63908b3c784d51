// SPDX-License-Identifier: Apache-2.0
#include "container/oci/container.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::oci {
namespace {

Container read(std::string text) {
  const auto document = json::Document::parse(std::move(text));
  EXPECT_TRUE(document.ok());
  auto container = parse_container(*document);
  EXPECT_TRUE(container.ok()) << container.error().text();
  return *std::move(container);
}

TEST(Container, ReadsWhatARequestNeeds) {
  const auto container = read(R"({"process": {"env": ["A=1", "B=x=y", "A=2", "C"],
    "user": {"uid": 1000}, "capabilities": {"bounding": ["CAP_KILL", "CAP_SYS_ADMIN"]}},
    "root": {"path": "rootfs", "readonly": true},
    "mounts": [{"destination": "/d", "source": "/s"}], "annotations": {"k": "v"}})");
  EXPECT_EQ(container.variable("A"), "2");
  EXPECT_EQ(container.variable("B"), "x=y");
  EXPECT_EQ(container.variable("C"), "");
  EXPECT_EQ(container.variable("D"), std::nullopt);
  EXPECT_EQ(container.annotation("k"), "v");
  EXPECT_EQ(container.mounts, (std::vector<Mount>{{"/s", "/d"}}));
  EXPECT_EQ(container.uid, 1000);
  EXPECT_TRUE(container.privileged);
  EXPECT_TRUE(container.read_only_root);
  EXPECT_FALSE(container.pod);
}

TEST(Container, AnEmptyDocumentIsAnEmptyContainer) {
  const auto container = read("{}");
  EXPECT_TRUE(container.env.empty());
  EXPECT_FALSE(container.privileged);
}

TEST(Container, TheEffectiveSetDoesNotMakeItPrivileged) {
  EXPECT_FALSE(
      read(R"({"process": {"capabilities": {"effective": ["CAP_SYS_ADMIN"]}}})").privileged);
}

TEST(Container, AUserNamespaceOfItsOwnIsSeen) {
  EXPECT_TRUE(read(R"({"linux": {"namespaces": [{"type": "user"}]}})").user_namespace);
  EXPECT_FALSE(read(R"({"linux": {"namespaces": [{"type": "mount"}]}})").user_namespace);
}

TEST(Container, ACapabilityOverAUserNamespaceIsNoPrivilege) {
  const std::string process =
      R"("process": {"capabilities": {"bounding": ["CAP_SYS_ADMIN"]}}, "linux": )";
  for (const auto* linux :
       {R"({"namespaces": [{"type": "user"}]})", R"({"uidMappings": [{"containerID": 0}]})",
        R"({"namespaces": [{"type": "user", "path": "/proc/4711/ns/user"}]})"}) {
    EXPECT_FALSE(read("{" + process + linux + "}").privileged) << linux;
  }
  EXPECT_TRUE(read("{" + process + R"({"namespaces": [{"type": "mount"}]}})").privileged);
}

TEST(Container, BelongsToAPodBelowACgroupOfTheConfiguration) {
  const auto document =
      json::Document::parse(R"({"linux": {"cgroupsPath": "/machine/my-pods/pod1/c1"}})");
  EXPECT_EQ(parse_container(*document)->pod, std::nullopt);
  const std::vector<std::string> names{"", "my-pods"};
  EXPECT_EQ(parse_container(*document, names)->pod, PodContainer{});
  EXPECT_EQ(parse_container(*document, std::vector<std::string>{"", "kube"})->pod, std::nullopt);
}

TEST(Container, BelongsToAPodWhenTheEngineSaysSo) {
  const auto containerd = read(R"({"annotations": {"io.kubernetes.cri.sandbox-uid": "u-1",
    "io.kubernetes.cri.container-name": "main"}})");
  EXPECT_EQ(containerd.pod, (PodContainer{"u-1", "main"}));
  const auto crio = read(R"({"annotations": {"io.kubernetes.pod.uid": "u-2",
    "io.kubernetes.container.name": "side"}})");
  EXPECT_EQ(crio.pod, (PodContainer{"u-2", "side"}));
}

TEST(Container, TwoNamesOfOnePodAreNone) {
  const auto pretender = read(R"({"annotations": {"io.kubernetes.pod.uid": "attacker",
    "io.kubernetes.container.name": "main", "io.kubernetes.cri.sandbox-uid": "victim",
    "io.kubernetes.cri.container-name": "train"}})");
  EXPECT_EQ(pretender.pod, PodContainer{});
}

TEST(Container, AnUnnamedPodIsStillAPod) {
  EXPECT_EQ(read(R"({"annotations": {"io.kubernetes.cri.container-type": "container"}})").pod,
            PodContainer{});
  EXPECT_EQ(read(R"({"linux": {"cgroupsPath": "kubepods-burstable-podX.slice:docker:1"}})").pod,
            PodContainer{});
}

TEST(Container, PodmansOwnMarksMakeNoPod) {
  EXPECT_EQ(read(R"({"annotations": {"io.container.manager": "libpod",
                                     "io.kubernetes.cri-o.Created": "2026-11-15T08:48:45Z",
                                     "io.kubernetes.cri-o.TTY": "false"}})")
                .pod,
            std::nullopt);
  EXPECT_EQ(read(R"({"annotations": {"io.kubernetes.cri-o.TTY": "false"}})").pod, PodContainer{});
  EXPECT_EQ(read(R"({"annotations": {"io.container.manager": "libpod",
                                     "io.kubernetes.pod.name": "web"}})")
                .pod,
            PodContainer{});
}

TEST(Container, PodmanIsKnownByMoreThanAnAnnotationThatAnImageCanReplace) {
  for (
      const auto* of_podman :
      {R"({"annotations": {"io.container.manager": "libpod"}})",
       R"({"linux": {"cgroupsPath": "machine.slice:libpod:1"}, "annotations": {"io.container.manager": "x"}})",
       R"({"mounts": [{"destination": "/run/.containerenv",
                        "source": "/run/s/overlay-containers/1/userdata/.containerenv"}],
            "annotations": {"io.container.manager": "x", "io.kubernetes.cri.sandbox-uid": "u"}})"})
    EXPECT_TRUE(read(of_podman).has_annotations_of_image) << of_podman;
  for (const auto* other : {R"({})", R"({"linux": {"cgroupsPath": "/docker/1"}})",
                            R"({"linux": {"cgroupsPath": "kubepods.slice:crio:1"},
                                "mounts": [{"destination": "/dev/shm",
                                            "source": "/run/s/overlay-containers/1/userdata/shm"}]})"})
    EXPECT_FALSE(read(other).has_annotations_of_image) << other;
}

TEST(Container, WrongTypesAreCorrupt) {
  for (const char* text : {"[]", R"({"process": []})", R"({"process": {"env": "A=1"}})",
                           R"({"mounts": {}})", R"({"linux": {"devices": 7}})"}) {
    const auto document = json::Document::parse(text);
    const auto container = parse_container(*document);
    ASSERT_FALSE(container.ok()) << text;
    EXPECT_EQ(container.error().code(), Errc::Corrupt);
  }
}

}  // namespace
}  // namespace gantry::oci
