// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/metrics_page.hpp"

#include "cluster/scheduler/objects_for_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::scheduler {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Page, ShowsWhatEachGpuHasPromisedUnderHamisNames) {
  ClusterCache cache;
  ASSERT_TRUE(cache.set_node(node_object("n1", {80, 40}).root()).ok());
  ASSERT_TRUE(
      cache
          .set_pod(
              pod_object(
                  {.uid = "a", .gpu_mem = "20", .node = "n1", .placement = on_card("GPU-n1-0", 20)})
                  .root(),
              {})
          .ok());
  const auto text = page(cache, SchedulerCounters(), {});
  EXPECT_THAT(text,
              HasSubstr(R"(hami_gpu_memory_limit_bytes{node="n1",device_uuid="GPU-n1-1",)"
                        R"(device_index="1",device_type="NVIDIA H200",zone="vGPU"} 42949672960)"));
  EXPECT_THAT(text,
              HasSubstr(R"(hami_node_gpu_memory_allocated_ratio{node="n1",device_uuid="GPU-n1-0",)"
                        R"(device_index="0",device_type="NVIDIA H200",zone="vGPU"} 0.25)"));
  EXPECT_THAT(
      text,
      HasSubstr(R"(hami_vgpu_memory_allocated_bytes{namespace="team",node="n1",pod="pod-a",)"));
  EXPECT_THAT(text, Not(HasSubstr("hami_resource_quota_used{")));
}

TEST(Page, ShowsQuotasWithWhatIsUsedOfThem) {
  ClusterCache cache;
  ASSERT_TRUE(cache
                  .set_namespace(parsed(R"({"metadata":{"name":"team","annotations":{)"
                                        R"("gantry.dev/gpu-memory-quota":"30Gi"}}})")
                                     .root())
                  .ok());
  const auto text = page(cache, SchedulerCounters(), {});
  EXPECT_THAT(
      text, HasSubstr(R"(hami_resource_quota_used{namespace="team",quota_name="nvidia.com/gpumem",)"
                      R"(limit="30720",zone="vGPU"} 0)"));
}

TEST(Page, CountsAnswersInBucketsThatAddUp) {
  SchedulerCounters counters;
  counters.filter.add(std::chrono::milliseconds(3));
  counters.filter.add(std::chrono::seconds(60));
  counters.filter.failed();
  const auto text = page(ClusterCache(), counters, {.leading = true});
  EXPECT_THAT(text, HasSubstr(R"(_bucket{verb="filter",le="0.0025"} 0)"));
  EXPECT_THAT(text, HasSubstr(R"(_bucket{verb="filter",le="0.005"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(_bucket{verb="filter",le="10"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(_bucket{verb="filter",le="+Inf"} 2)"));
  EXPECT_THAT(text, HasSubstr(R"(gantry_scheduler_request_failures_total{verb="filter"} 1)"));
  EXPECT_THAT(text, HasSubstr("gantry_scheduler_leader 1\n"));
}

}  // namespace
}  // namespace gantry::scheduler
