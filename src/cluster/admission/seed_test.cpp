// SPDX-License-Identifier: Apache-2.0
// Pods of the years in which users mounted the driver themselves.
#include "cluster/admission/admission_for_test.hpp"
#include "cluster/admission/containers_internal.hpp"

namespace gantry::admission {
namespace {

using test::create;
using testing::Contains;
using testing::HasSubstr;

// As the API server hands it over: requests are filled from the limits already.
const auto* const kTraining = R"({"metadata":{"generateName":"module4-ex2-"},"spec":{
  "containers":[{"name":"tensorflow","image":"tf-mnist:gpu","args":["--max_steps","500"],
    "resources":{"limits":{"alpha.kubernetes.io/nvidia-gpu":"1"},"requests":{"alpha.kubernetes.io/nvidia-gpu":"1"}},
    "volumeMounts":[{"name":"lib","mountPath":"/usr/local/nvidia/lib64"},
                    {"name":"libcuda","mountPath":"/usr/lib/x86_64-linux-gnu/libcuda.so.1"},
                    {"name":"token","mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}]}],
  "restartPolicy":"OnFailure",
  "volumes":[{"name":"lib","hostPath":{"path":"/usr/lib/nvidia-384","type":""}},
             {"name":"libcuda","hostPath":{"path":"/usr/lib/x86_64-linux-gnu/libcuda.so.1","type":""}},
             {"name":"token","projected":{}}]}})";

TEST(OldManifest, OfATrainingRunsOnWhatTheNodeBrings) {
  const auto admitted = create(kTraining);
  ASSERT_EQ(admitted.verdict.answer, Admission::Allowed) << admitted.verdict.message;
  EXPECT_EQ(admitted.pod,
            nlohmann::json::parse(R"({"metadata":{"generateName":"module4-ex2-"},"spec":{
    "containers":[{"name":"tensorflow","image":"tf-mnist:gpu","args":["--max_steps","500"],
      "resources":{"limits":{"nvidia.com/gpu":"1"},"requests":{"nvidia.com/gpu":"1"}},
      "volumeMounts":[{"name":"token","mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}]}],
    "restartPolicy":"OnFailure","volumes":[{"name":"token","projected":{}}]}})"));
  EXPECT_THAT(admitted.verdict.warnings,
              Contains(HasSubstr("alpha.kubernetes.io/nvidia-gpu is replaced by nvidia.com/gpu")));
  EXPECT_THAT(admitted.verdict.warnings,
              Contains(HasSubstr("volume \"lib\" (/usr/lib/nvidia-384) is removed")));
}

TEST(OldManifest, OfNvidiaSmiRunsOnWhatTheNodeBrings) {
  const auto admitted =
      create(R"({"spec":{"volumes":[{"name":"bin","hostPath":{"path":"/usr/lib/nvidia-384/bin"}},
      {"name":"lib","hostPath":{"path":"/usr/lib/nvidia-384"}}],"containers":[{"name":"nvidia-smi","command":["nvidia-smi"],
      "resources":{"limits":{"alpha.kubernetes.io/nvidia-gpu":1}},
      "volumeMounts":[{"name":"bin","mountPath":"/usr/local/nvidia/bin"},{"name":"lib","mountPath":"/usr/lib/nvidia"}]}]}})");
  ASSERT_EQ(admitted.verdict.answer, Admission::Allowed) << admitted.verdict.message;
  EXPECT_EQ(
      admitted.pod,
      nlohmann::json::parse(
          R"({"spec":{"volumes":[],"containers":[{"name":"nvidia-smi","command":["nvidia-smi"],
      "resources":{"limits":{"nvidia.com/gpu":1}},"volumeMounts":[]}]}})"));
}

TEST(OldManifest, WithTheNewNameBesideKeepsTheNewOne) {
  const auto same =
      create(test::pod_text({R"("alpha.kubernetes.io/nvidia-gpu":1,"nvidia.com/gpu":"1")"}));
  EXPECT_EQ(same.pod["spec"]["containers"][0]["resources"]["limits"].dump(),
            R"({"nvidia.com/gpu":"1"})");
  EXPECT_THAT(
      test::refusal(
          create(test::pod_text({R"("alpha.kubernetes.io/nvidia-gpu":2,"nvidia.com/gpu":1)"})),
          Admission::Invalid),
      HasSubstr(
          "old and the new name of one resource but have different values; keep nvidia.com/gpu"));
}

TEST(OldManifest, WithAFractionIsRefusedUnderTheNewName) {
  EXPECT_THAT(test::refusal(create(test::pod_text({R"("alpha.kubernetes.io/nvidia-gpu":"0.5")"})),
                            Admission::Invalid),
              HasSubstr("nvidia.com/gpumem-percentage: 50"));
}

TEST(DriverPath, IsWhereDriversWere) {
  for (const auto* path :
       {"/usr/lib/nvidia-384", "/usr/lib/nvidia-384/bin", "/usr//lib/./nvidia-384/",
        "/usr/lib/nvidia", "/usr/lib32/nvidia-390", "/usr/local/nvidia", "/usr/local/nvidia/lib64",
        "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib64/libcuda.so",
        "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "/usr/lib/x86_64-linux-gnu/nvidia",
        "/usr/bin/nvidia-smi", "/home/kubernetes/bin/nvidia/lib64",
        "/var/lib/nvidia-docker/volumes/nvidia_driver/384.98"})
    EXPECT_TRUE(is_driver_path(path)) << path;
}

TEST(DriverPath, IsNothingElse) {
  for (const auto* path :
       {"/", "", "/usr", "/usr/lib", "/usr/lib/x86_64-linux-gnu", "/usr/local",
        "/usr/local/nvidia-data", "/usr/lib/nvidia-container-toolkit", "/data/nvidia",
        "/data/libcuda.so.1", "/opt/nvidia", "/usr/lib/libcudart.so.12", "/dev/nvidia0",
        "/usr/bin/nvidia-container-runtime", "/var/lib/kubelet/device-plugins",
        "/home/me/nvidia-384", "/usr/lib/nvidia-"})
    EXPECT_FALSE(is_driver_path(path)) << path;
  EXPECT_FALSE(is_driver_path("/usr/local/nvidia/" + std::string(5000, 'x')));
}

}  // namespace
}  // namespace gantry::admission
