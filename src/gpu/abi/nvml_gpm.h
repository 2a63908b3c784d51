/* SPDX-License-Identifier: Apache-2.0
 *
 * NVML's profiling counters (GPM): Hopper and newer, drivers 535 and newer. Separate from
 * nvml.h, because only the code that measures load needs it. Names and layout are the vendor's.
 */
#ifndef GANTRY_ABI_NVML_GPM_H
#define GANTRY_ABI_NVML_GPM_H

#include "gpu/abi/nvml_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* clang-format off */
#define NVML_GPM_METRIC_GRAPHICS_UTIL 1     /* percent */
#define NVML_GPM_METRIC_SM_UTIL 2
#define NVML_GPM_METRIC_SM_OCCUPANCY 3
#define NVML_GPM_METRIC_ANY_TENSOR_UTIL 5
#define NVML_GPM_METRIC_DRAM_BW_UTIL 10
#define NVML_GPM_METRIC_FP64_UTIL 11
#define NVML_GPM_METRIC_FP32_UTIL 12
#define NVML_GPM_METRIC_FP16_UTIL 13
#define NVML_GPM_METRIC_PCIE_TX_PER_SEC 20  /* MiB per second */
#define NVML_GPM_METRIC_PCIE_RX_PER_SEC 21
#define NVML_GPM_METRIC_MAX 333             /* of API 13; only numMetrics of them are touched */

typedef struct {
  unsigned int metricId;
  nvmlReturn_t nvmlReturn;
  double value;
  struct { char *shortName, *longName, *unit; } metricInfo;
} nvmlGpmMetric_t;

typedef struct {
  unsigned int version, numMetrics;
  nvmlGpmSample_t sample1, sample2;
  nvmlGpmMetric_t metrics[NVML_GPM_METRIC_MAX];
} nvmlGpmMetricsGet_t;
#define NVML_GPM_METRICS_GET_VERSION 1
#define NVML_GPM_SUPPORT_VERSION 1

typedef nvmlReturn_t (*gantryGpmSampleAlloc_t)(nvmlGpmSample_t* sample);
typedef nvmlReturn_t (*gantryGpmSampleFree_t)(nvmlGpmSample_t sample);
typedef nvmlReturn_t (*gantryGpmSampleGet_t)(nvmlDevice_t device, nvmlGpmSample_t sample);
typedef nvmlReturn_t (*gantryGpmMigSampleGet_t)(nvmlDevice_t device, unsigned int gpu_instance, nvmlGpmSample_t sample);
typedef nvmlReturn_t (*gantryGpmMetricsGet_t)(nvmlGpmMetricsGet_t* metrics);
/* clang-format on */

#ifdef __cplusplus
}
#endif
#endif
