// SPDX-License-Identifier: Apache-2.0
// Reads the annotations with which the schedulers of gpushare and HAMi record a pod's placement.
#pragma once

#include "cluster/podspec/placement.hpp"

#include <string_view>

namespace gantry::podspec {

inline constexpr std::string_view kLegacyIndex = "ALIYUN_COM_GPU_MEM_IDX";
inline constexpr std::string_view kLegacyCard = "ALIYUN_COM_GPU_MEM_DEV";
inline constexpr std::string_view kLegacyPod = "ALIYUN_COM_GPU_MEM_POD";
inline constexpr std::string_view kLegacyAssigned = "ALIYUN_COM_GPU_MEM_ASSIGNED";
inline constexpr std::string_view kLegacyTime = "ALIYUN_COM_GPU_MEM_ASSUME_TIME";
inline constexpr std::string_view kLegacyAllocation = "scheduler.framework.gpushare.allocation";
inline constexpr std::string_view kHamiNode = "hami.io/vgpu-node";
inline constexpr std::string_view kHamiTime = "hami.io/vgpu-time";
inline constexpr std::string_view kHamiBindTime = "hami.io/bind-time";
inline constexpr std::string_view kHamiPhase = "hami.io/bind-phase";
inline constexpr std::string_view kHamiAllocated = "hami.io/vgpu-devices-allocated";

// Each returns nullopt if its annotation does not exist.
Result<std::optional<Placement>> gpushare_placement(const json::Value& pod, const PodRequest& ask,
                                                    const std::vector<CardId>& cards,
                                                    std::uint64_t unit_mib);
Result<std::optional<Placement>> hami_placement(const json::Value& pod, const PodRequest& ask,
                                                const std::vector<CardId>& cards);

}  // namespace gantry::podspec
