/* SPDX-License-Identifier: Apache-2.0
 *
 * Types of the NVML ABI, declared here so that neither the CUDA toolkit nor a driver is needed to
 * build. Names and layouts are those of the vendor's library: nvml_layout.def holds the sizes and
 * offsets, and nvml_layout_test.cpp asserts them.
 *
 * The first member of a versioned struct is NVML_STRUCT_VERSION(size, number), filled in by the
 * caller.
 */
#ifndef GANTRY_ABI_NVML_TYPES_H
#define GANTRY_ABI_NVML_TYPES_H

#ifdef __cplusplus
extern "C" {
#endif

/* clang-format off */

/* ---- handles: opaque to every caller -------------------------------------------------------- */
typedef struct nvmlDevice_st* nvmlDevice_t;
typedef struct nvmlGpuInstance_st* nvmlGpuInstance_t;
typedef struct nvmlComputeInstance_st* nvmlComputeInstance_t;
typedef struct nvmlUnit_st* nvmlUnit_t;
typedef struct nvmlEventSet_st* nvmlEventSet_t;
typedef struct nvmlSystemEventSet_st* nvmlSystemEventSet_t;
typedef struct nvmlGpmSample_st* nvmlGpmSample_t;

#define NVML_STRUCT_VERSION(data, ver) \
  ((unsigned int)(sizeof(nvml##data##_v##ver##_t) | ((ver) << 24U)))

/* Memory of a process that this caller may not see. */
#define NVML_VALUE_NOT_AVAILABLE (-1)

typedef enum nvmlReturn_enum {
  NVML_SUCCESS = 0,
  NVML_ERROR_UNINITIALIZED = 1,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NO_PERMISSION = 4,
  NVML_ERROR_ALREADY_INITIALIZED = 5,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_INSUFFICIENT_SIZE = 7,
  NVML_ERROR_INSUFFICIENT_POWER = 8,
  NVML_ERROR_DRIVER_NOT_LOADED = 9,
  NVML_ERROR_TIMEOUT = 10,
  NVML_ERROR_IRQ_ISSUE = 11,
  NVML_ERROR_LIBRARY_NOT_FOUND = 12,
  NVML_ERROR_FUNCTION_NOT_FOUND = 13,
  NVML_ERROR_CORRUPTED_INFOROM = 14,
  NVML_ERROR_GPU_IS_LOST = 15,
  NVML_ERROR_RESET_REQUIRED = 16,
  NVML_ERROR_OPERATING_SYSTEM = 17,
  NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
  NVML_ERROR_IN_USE = 19,
  NVML_ERROR_MEMORY = 20,
  NVML_ERROR_NO_DATA = 21,
  NVML_ERROR_VGPU_ECC_NOT_SUPPORTED = 22,
  NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
  NVML_ERROR_FREQ_NOT_SUPPORTED = 24,
  NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
  NVML_ERROR_DEPRECATED = 26,
  NVML_ERROR_NOT_READY = 27,
  NVML_ERROR_GPU_NOT_FOUND = 28,
  NVML_ERROR_INVALID_STATE = 29,
  NVML_ERROR_RESET_TYPE_NOT_SUPPORTED = 30,
  NVML_ERROR_UNKNOWN = 999
} nvmlReturn_t;

typedef enum nvmlEnableState_enum { NVML_FEATURE_DISABLED = 0, NVML_FEATURE_ENABLED = 1 } nvmlEnableState_t;

/* ---- sizes of caller's buffers -------------------------------------------------------------- */
#define NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE 32
#define NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE 16
#define NVML_DEVICE_INFOROM_VERSION_BUFFER_SIZE 16
#define NVML_DEVICE_UUID_BUFFER_SIZE 80
#define NVML_DEVICE_UUID_V2_BUFFER_SIZE 96
#define NVML_DEVICE_PART_NUMBER_BUFFER_SIZE 80
#define NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE 80
#define NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE 80
#define NVML_DEVICE_NAME_BUFFER_SIZE 64
#define NVML_DEVICE_NAME_V2_BUFFER_SIZE 96
#define NVML_DEVICE_SERIAL_BUFFER_SIZE 30
#define NVML_DEVICE_VBIOS_VERSION_BUFFER_SIZE 32
#define NVML_GSP_FIRMWARE_VERSION_BUF_SIZE 0x40
#define NVML_PERF_MODES_BUFFER_SIZE 2048
#define NVML_GRID_LICENSE_BUFFER_SIZE 128
#define NVML_GRID_LICENSE_FEATURE_MAX_COUNT 3

#define NVML_INIT_FLAG_NO_GPUS 1
#define NVML_INIT_FLAG_NO_ATTACH 2
#define NVML_INIT_FLAG_FORCE_INIT 4

/* ---- identity ------------------------------------------------------------------------------- */
typedef struct nvmlPciInfo_st {
  char busIdLegacy[NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE]; /* 4-digit domain */
  unsigned int domain, bus, device;
  unsigned int pciDeviceId;    /* device << 16 | vendor */
  unsigned int pciSubSystemId;
  char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE];          /* 8-digit domain */
} nvmlPciInfo_t;

typedef struct {
  unsigned int version;
  unsigned int domain, bus, device;
  unsigned int pciDeviceId, pciSubSystemId;
  unsigned int baseClass, subClass;
  char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE];
} nvmlPciInfoExt_v1_t;
typedef nvmlPciInfoExt_v1_t nvmlPciInfoExt_t;
#define nvmlPciInfoExt_v1 NVML_STRUCT_VERSION(PciInfoExt, 1)

/* What the first two forms of nvmlDeviceGetPciInfo fill; the vendor's header no longer has them. */
typedef struct {
  char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE];
  unsigned int domain, bus, device, pciDeviceId;
  unsigned int reserved[4];
} gantryPciInfoV1_t;
typedef struct {
  char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE];
  unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
  unsigned int reserved[4];
} gantryPciInfoV2_t;

typedef struct nvmlExcludedDeviceInfo_st {
  nvmlPciInfo_t pciInfo;
  char uuid[NVML_DEVICE_UUID_BUFFER_SIZE];
} nvmlExcludedDeviceInfo_t;

typedef enum { NVML_UUID_TYPE_NONE = 0, NVML_UUID_TYPE_ASCII = 1, NVML_UUID_TYPE_BINARY = 2 } nvmlUUIDType_t;
#define NVML_DEVICE_UUID_ASCII_LEN 41
#define NVML_DEVICE_UUID_BINARY_LEN 16
typedef union {
  char str[NVML_DEVICE_UUID_ASCII_LEN];
  unsigned char bytes[NVML_DEVICE_UUID_BINARY_LEN];
} nvmlUUIDValue_t;
typedef struct { unsigned int version, type; nvmlUUIDValue_t value; } nvmlUUID_v1_t;
typedef nvmlUUID_v1_t nvmlUUID_t;
#define nvmlUUID_v1 NVML_STRUCT_VERSION(UUID, 1)

typedef struct { unsigned int version; unsigned long long value; } nvmlPdi_v1_t;
typedef nvmlPdi_v1_t nvmlPdi_t;
#define nvmlPdi_v1 NVML_STRUCT_VERSION(Pdi, 1)

typedef enum nvmlBrandType_enum {
  NVML_BRAND_UNKNOWN = 0, NVML_BRAND_QUADRO = 1, NVML_BRAND_TESLA = 2, NVML_BRAND_NVS = 3,
  NVML_BRAND_GRID = 4, NVML_BRAND_GEFORCE = 5, NVML_BRAND_TITAN = 6, NVML_BRAND_NVIDIA_VAPPS = 7,
  NVML_BRAND_NVIDIA_VPC = 8, NVML_BRAND_NVIDIA_VCS = 9, NVML_BRAND_NVIDIA_VWS = 10,
  NVML_BRAND_NVIDIA_CLOUD_GAMING = 11, NVML_BRAND_QUADRO_RTX = 12, NVML_BRAND_NVIDIA_RTX = 13,
  NVML_BRAND_NVIDIA = 14, NVML_BRAND_GEFORCE_RTX = 15, NVML_BRAND_TITAN_RTX = 16, NVML_BRAND_COUNT = 18
} nvmlBrandType_t;

typedef unsigned int nvmlDeviceArchitecture_t;
#define NVML_DEVICE_ARCH_KEPLER 2
#define NVML_DEVICE_ARCH_MAXWELL 3
#define NVML_DEVICE_ARCH_PASCAL 4
#define NVML_DEVICE_ARCH_VOLTA 5
#define NVML_DEVICE_ARCH_TURING 6
#define NVML_DEVICE_ARCH_AMPERE 7
#define NVML_DEVICE_ARCH_ADA 8
#define NVML_DEVICE_ARCH_HOPPER 9
#define NVML_DEVICE_ARCH_BLACKWELL 10
#define NVML_DEVICE_ARCH_UNKNOWN 0xffffffff

typedef unsigned int nvmlBusType_t;
#define NVML_BUS_TYPE_UNKNOWN 0
#define NVML_BUS_TYPE_PCI 1
#define NVML_BUS_TYPE_PCIE 2
#define NVML_BUS_TYPE_FPCI 3
#define NVML_BUS_TYPE_AGP 4

typedef enum nvmlInforomObject_enum {
  NVML_INFOROM_OEM = 0, NVML_INFOROM_ECC = 1, NVML_INFOROM_POWER = 2, NVML_INFOROM_DEN = 3, NVML_INFOROM_COUNT
} nvmlInforomObject_t;

typedef struct nvmlDeviceAttributes_st {
  unsigned int multiprocessorCount;
  unsigned int sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount, sharedJpegCount, sharedOfaCount;
  unsigned int gpuInstanceSliceCount, computeInstanceSliceCount;
  unsigned long long memorySizeMB;
} nvmlDeviceAttributes_t;

typedef struct {
  unsigned int version;
  unsigned char ibGuid[16], rackGuid[16];
  unsigned char chassisPhysicalSlotNumber, computeSlotIndex, nodeIndex, peerType, moduleId;
} nvmlPlatformInfo_v1_t;
#define nvmlPlatformInfo_v1 NVML_STRUCT_VERSION(PlatformInfo, 1)
typedef struct {
  unsigned int version;
  unsigned char ibGuid[16], chassisSerialNumber[16];
  unsigned char slotNumber, trayIndex, hostId, peerType, moduleId;
} nvmlPlatformInfo_v2_t;
typedef nvmlPlatformInfo_v2_t nvmlPlatformInfo_t;
#define nvmlPlatformInfo_v2 NVML_STRUCT_VERSION(PlatformInfo, 2)

typedef struct {
  unsigned int version;
  char branch[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE];
} nvmlSystemDriverBranchInfo_v1_t;
typedef nvmlSystemDriverBranchInfo_v1_t nvmlSystemDriverBranchInfo_t;
#define nvmlSystemDriverBranchInfo_v1 NVML_STRUCT_VERSION(SystemDriverBranchInfo, 1)

#define NVML_CUDA_DRIVER_VERSION_MAJOR(v) ((v) / 1000)
#define NVML_CUDA_DRIVER_VERSION_MINOR(v) (((v) % 1000) / 10)

typedef struct nvmlHwbcEntry_st { unsigned int hwbcId; char firmwareVersion[32]; } nvmlHwbcEntry_t;

/* ---- memory --------------------------------------------------------------------------------- */
typedef struct nvmlMemory_st { unsigned long long total, free, used; } nvmlMemory_t;
typedef struct nvmlMemory_v2_st {
  unsigned int version;
  unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;
#define nvmlMemory_v2 NVML_STRUCT_VERSION(Memory, 2)
typedef struct nvmlBAR1Memory_st { unsigned long long bar1Total, bar1Free, bar1Used; } nvmlBAR1Memory_t;

/* ---- processes ------------------------------------------------------------------------------ */
typedef struct nvmlProcessInfo_v1_st { unsigned int pid; unsigned long long usedGpuMemory; } nvmlProcessInfo_v1_t;
typedef struct nvmlProcessInfo_v2_st {
  unsigned int pid;
  unsigned long long usedGpuMemory;
  unsigned int gpuInstanceId, computeInstanceId; /* 0xFFFFFFFF: none */
} nvmlProcessInfo_v2_t, nvmlProcessInfo_t;
typedef struct {
  unsigned int pid;
  unsigned long long usedGpuMemory;
  unsigned int gpuInstanceId, computeInstanceId;
  unsigned long long usedGpuCcProtectedMemory;
} nvmlProcessDetail_v1_t;
typedef struct {
  unsigned int version, mode, numProcArrayEntries;
  nvmlProcessDetail_v1_t* procArray;
} nvmlProcessDetailList_v1_t;
typedef nvmlProcessDetailList_v1_t nvmlProcessDetailList_t;
#define nvmlProcessDetailList_v1 NVML_STRUCT_VERSION(ProcessDetailList, 1)
typedef enum nvmlProcessMode_enum {
  NVML_PROCESS_MODE_COMPUTE = 0, NVML_PROCESS_MODE_GRAPHICS = 1, NVML_PROCESS_MODE_MPS = 2,
  NVML_PROCESS_MODE_ALL = 3, NVML_PROCESS_MODE_MAX = 4
} nvmlProcessMode_t;

typedef struct nvmlProcessUtilizationSample_st {
  unsigned int pid;
  unsigned long long timeStamp;
  unsigned int smUtil, memUtil, encUtil, decUtil;
} nvmlProcessUtilizationSample_t;
typedef struct {
  unsigned long long timeStamp;
  unsigned int pid, smUtil, memUtil, encUtil, decUtil, jpgUtil, ofaUtil;
} nvmlProcessUtilizationInfo_v1_t;
typedef struct {
  unsigned int version, processSamplesCount;
  unsigned long long lastSeenTimeStamp;
  nvmlProcessUtilizationInfo_v1_t* procUtilArray;
} nvmlProcessesUtilizationInfo_v1_t;
typedef nvmlProcessesUtilizationInfo_v1_t nvmlProcessesUtilizationInfo_t;
#define nvmlProcessesUtilizationInfo_v1 NVML_STRUCT_VERSION(ProcessesUtilizationInfo, 1)

typedef struct nvmlAccountingStats_st {
  unsigned int gpuUtilization, memoryUtilization;
  unsigned long long maxMemoryUsage, time, startTime;
  unsigned int isRunning;
  unsigned int reserved[5];
} nvmlAccountingStats_t;

/* ---- load, clocks, power, temperature ------------------------------------------------------- */
typedef struct nvmlUtilization_st { unsigned int gpu, memory; } nvmlUtilization_t;

typedef enum nvmlClockType_enum {
  NVML_CLOCK_GRAPHICS = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2, NVML_CLOCK_VIDEO = 3, NVML_CLOCK_COUNT
} nvmlClockType_t;
typedef enum nvmlClockId_enum {
  NVML_CLOCK_ID_CURRENT = 0, NVML_CLOCK_ID_APP_CLOCK_TARGET = 1, NVML_CLOCK_ID_APP_CLOCK_DEFAULT = 2,
  NVML_CLOCK_ID_CUSTOMER_BOOST_MAX = 3, NVML_CLOCK_ID_COUNT
} nvmlClockId_t;
typedef enum nvmlPStates_enum {
  NVML_PSTATE_0 = 0, NVML_PSTATE_1, NVML_PSTATE_2, NVML_PSTATE_3, NVML_PSTATE_4, NVML_PSTATE_5,
  NVML_PSTATE_6, NVML_PSTATE_7, NVML_PSTATE_8, NVML_PSTATE_9, NVML_PSTATE_10, NVML_PSTATE_11,
  NVML_PSTATE_12, NVML_PSTATE_13, NVML_PSTATE_14, NVML_PSTATE_15, NVML_PSTATE_UNKNOWN = 32
} nvmlPstates_t;
#define NVML_MAX_GPU_PERF_PSTATES 16

typedef struct { unsigned int version; char str[NVML_PERF_MODES_BUFFER_SIZE]; } nvmlDevicePerfModes_v1_t;
typedef nvmlDevicePerfModes_v1_t nvmlDevicePerfModes_t;
#define nvmlDevicePerfModes_v1 NVML_STRUCT_VERSION(DevicePerfModes, 1)
typedef struct { unsigned int version; char str[NVML_PERF_MODES_BUFFER_SIZE]; } nvmlDeviceCurrentClockFreqs_v1_t;
typedef nvmlDeviceCurrentClockFreqs_v1_t nvmlDeviceCurrentClockFreqs_t;
#define nvmlDeviceCurrentClockFreqs_v1 NVML_STRUCT_VERSION(DeviceCurrentClockFreqs, 1)

#define NVML_MAX_GPU_UTILIZATIONS 8
typedef struct nvmlGpuDynamicPstatesInfo_st {
  unsigned int flags;
  struct { unsigned int bIsPresent, percentage, incThreshold, decThreshold; } utilization[NVML_MAX_GPU_UTILIZATIONS];
} nvmlGpuDynamicPstatesInfo_t;

#define nvmlClocksEventReasonNone 0x0LL
#define nvmlClocksEventReasonGpuIdle 0x1LL
#define nvmlClocksEventReasonApplicationsClocksSetting 0x2LL
#define nvmlClocksEventReasonSwPowerCap 0x4LL
#define nvmlClocksThrottleReasonHwSlowdown 0x8LL
#define nvmlClocksEventReasonSyncBoost 0x10LL
#define nvmlClocksEventReasonSwThermalSlowdown 0x20LL
#define nvmlClocksThrottleReasonHwThermalSlowdown 0x40LL
#define nvmlClocksThrottleReasonHwPowerBrakeSlowdown 0x80LL
#define nvmlClocksEventReasonDisplayClockSetting 0x100LL
#define nvmlClocksEventReasonAll 0x1FFLL

typedef enum nvmlTemperatureSensors_enum { NVML_TEMPERATURE_GPU = 0, NVML_TEMPERATURE_COUNT } nvmlTemperatureSensors_t;
typedef enum nvmlTemperatureThresholds_enum {
  NVML_TEMPERATURE_THRESHOLD_SHUTDOWN = 0, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1,
  NVML_TEMPERATURE_THRESHOLD_MEM_MAX = 2, NVML_TEMPERATURE_THRESHOLD_GPU_MAX = 3,
  NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_MIN = 4, NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_CURR = 5,
  NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_MAX = 6, NVML_TEMPERATURE_THRESHOLD_GPS_CURR = 7,
  NVML_TEMPERATURE_THRESHOLD_COUNT
} nvmlTemperatureThresholds_t;
typedef struct { unsigned int version; nvmlTemperatureSensors_t sensorType; int temperature; } nvmlTemperature_v1_t;
typedef nvmlTemperature_v1_t nvmlTemperature_t;
#define nvmlTemperature_v1 NVML_STRUCT_VERSION(Temperature, 1)
typedef struct { unsigned int version; int marginTemperature; } nvmlMarginTemperature_v1_t;
typedef nvmlMarginTemperature_v1_t nvmlMarginTemperature_t;
#define nvmlMarginTemperature_v1 NVML_STRUCT_VERSION(MarginTemperature, 1)

typedef struct { unsigned int version, fan, speed; } nvmlFanSpeedInfo_v1_t;
typedef nvmlFanSpeedInfo_v1_t nvmlFanSpeedInfo_t;
#define nvmlFanSpeedInfo_v1 NVML_STRUCT_VERSION(FanSpeedInfo, 1)

#define NVML_MAX_THERMAL_SENSORS_PER_GPU 3
typedef enum {
  NVML_THERMAL_TARGET_UNKNOWN = -1, NVML_THERMAL_TARGET_NONE = 0, NVML_THERMAL_TARGET_GPU = 1,
  NVML_THERMAL_TARGET_MEMORY = 2, NVML_THERMAL_TARGET_POWER_SUPPLY = 4, NVML_THERMAL_TARGET_BOARD = 8,
  NVML_THERMAL_TARGET_ALL = 15
} nvmlThermalTarget_t;
typedef enum {
  NVML_THERMAL_CONTROLLER_UNKNOWN = -1, NVML_THERMAL_CONTROLLER_NONE = 0, NVML_THERMAL_CONTROLLER_GPU_INTERNAL = 1
} nvmlThermalController_t;
typedef struct {
  unsigned int count;
  struct {
    nvmlThermalController_t controller;
    int defaultMinTemp, defaultMaxTemp, currentTemp;
    nvmlThermalTarget_t target;
  } sensor[NVML_MAX_THERMAL_SENSORS_PER_GPU];
} nvmlGpuThermalSettings_t;

typedef unsigned int nvmlPowerSource_t;
#define NVML_POWER_SOURCE_AC 0
typedef unsigned char nvmlPowerScopeType_t;
typedef struct { unsigned int version; nvmlPowerScopeType_t powerScope; unsigned int powerValueMw; } nvmlPowerValue_v2_t;
#define nvmlPowerValue_v2 NVML_STRUCT_VERSION(PowerValue, 2)

typedef enum nvmlPerfPolicyType_enum {
  NVML_PERF_POLICY_POWER = 0, NVML_PERF_POLICY_THERMAL = 1, NVML_PERF_POLICY_SYNC_BOOST = 2,
  NVML_PERF_POLICY_BOARD_LIMIT = 3, NVML_PERF_POLICY_LOW_UTILIZATION = 4, NVML_PERF_POLICY_RELIABILITY = 5,
  NVML_PERF_POLICY_TOTAL_APP_CLOCKS = 10, NVML_PERF_POLICY_TOTAL_BASE_CLOCKS = 11, NVML_PERF_POLICY_COUNT
} nvmlPerfPolicyType_t;
typedef struct nvmlViolationTime_st { unsigned long long referenceTime, violationTime; } nvmlViolationTime_t;

typedef enum nvmlSamplingType_enum {
  NVML_TOTAL_POWER_SAMPLES = 0, NVML_GPU_UTILIZATION_SAMPLES = 1, NVML_MEMORY_UTILIZATION_SAMPLES = 2,
  NVML_ENC_UTILIZATION_SAMPLES = 3, NVML_DEC_UTILIZATION_SAMPLES = 4, NVML_PROCESSOR_CLK_SAMPLES = 5,
  NVML_MEMORY_CLK_SAMPLES = 6, NVML_MODULE_POWER_SAMPLES = 7, NVML_JPG_UTILIZATION_SAMPLES = 8,
  NVML_OFA_UTILIZATION_SAMPLES = 9, NVML_SAMPLINGTYPE_COUNT
} nvmlSamplingType_t;
typedef enum nvmlValueType_enum {
  NVML_VALUE_TYPE_DOUBLE = 0, NVML_VALUE_TYPE_UNSIGNED_INT = 1, NVML_VALUE_TYPE_UNSIGNED_LONG = 2,
  NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3, NVML_VALUE_TYPE_SIGNED_LONG_LONG = 4, NVML_VALUE_TYPE_SIGNED_INT = 5,
  NVML_VALUE_TYPE_UNSIGNED_SHORT = 6, NVML_VALUE_TYPE_COUNT
} nvmlValueType_t;
typedef union nvmlValue_st {
  double dVal;
  int siVal;
  unsigned int uiVal;
  unsigned long ulVal;
  unsigned long long ullVal;
  signed long long sllVal;
  unsigned short usVal;
} nvmlValue_t;
typedef struct nvmlSample_st { unsigned long long timeStamp; nvmlValue_t sampleValue; } nvmlSample_t;

typedef enum nvmlPcieUtilCounter_enum {
  NVML_PCIE_UTIL_TX_BYTES = 0, NVML_PCIE_UTIL_RX_BYTES = 1, NVML_PCIE_UTIL_COUNT
} nvmlPcieUtilCounter_t;

typedef enum nvmlEncoderQueryType_enum {
  NVML_ENCODER_QUERY_H264 = 0, NVML_ENCODER_QUERY_HEVC = 1, NVML_ENCODER_QUERY_AV1 = 2, NVML_ENCODER_QUERY_UNKNOWN = 0xFF
} nvmlEncoderType_t;
typedef struct nvmlEncoderSessionInfo_st {
  unsigned int sessionId, pid, vgpuInstance;
  nvmlEncoderType_t codecType;
  unsigned int hResolution, vResolution, averageFps, averageLatency;
} nvmlEncoderSessionInfo_t;
typedef struct nvmlFBCStats_st { unsigned int sessionsCount, averageFPS, averageLatency; } nvmlFBCStats_t;

/* ---- modes ---------------------------------------------------------------------------------- */
typedef enum nvmlComputeMode_enum {
  NVML_COMPUTEMODE_DEFAULT = 0, NVML_COMPUTEMODE_EXCLUSIVE_THREAD = 1, NVML_COMPUTEMODE_PROHIBITED = 2,
  NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 3, NVML_COMPUTEMODE_COUNT
} nvmlComputeMode_t;
typedef enum nvmlDriverModel_enum { NVML_DRIVER_WDDM = 0, NVML_DRIVER_WDM = 1, NVML_DRIVER_MCDM = 2 } nvmlDriverModel_t;
typedef enum nvmlGom_enum { NVML_GOM_ALL_ON = 0, NVML_GOM_COMPUTE = 1, NVML_GOM_LOW_DP = 2 } nvmlGpuOperationMode_t;
typedef enum nvmlRestrictedAPI_enum {
  NVML_RESTRICTED_API_SET_APPLICATION_CLOCKS = 0, NVML_RESTRICTED_API_SET_AUTO_BOOSTED_CLOCKS = 1, NVML_RESTRICTED_API_COUNT
} nvmlRestrictedAPI_t;
typedef enum nvmlGpuVirtualizationMode {
  NVML_GPU_VIRTUALIZATION_MODE_NONE = 0, NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH = 1,
  NVML_GPU_VIRTUALIZATION_MODE_VGPU = 2, NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU = 3,
  NVML_GPU_VIRTUALIZATION_MODE_HOST_VSGA = 4
} nvmlGpuVirtualizationMode_t;
typedef enum nvmlHostVgpuMode_enum { NVML_HOST_VGPU_MODE_NON_SRIOV = 0, NVML_HOST_VGPU_MODE_SRIOV = 1 } nvmlHostVgpuMode_t;
typedef struct { unsigned int isC2cEnabled; } nvmlC2cModeInfo_v1_t;
typedef enum {
  NVML_DEVICE_ADDRESSING_MODE_NONE = 0, NVML_DEVICE_ADDRESSING_MODE_HMM = 1, NVML_DEVICE_ADDRESSING_MODE_ATS = 2
} nvmlDeviceAddressingModeType_t;
typedef struct { unsigned int version, value; } nvmlDeviceAddressingMode_v1_t;
typedef nvmlDeviceAddressingMode_v1_t nvmlDeviceAddressingMode_t;
#define nvmlDeviceAddressingMode_v1 NVML_STRUCT_VERSION(DeviceAddressingMode, 1)
typedef struct { unsigned int version; nvmlEnableState_t encryptionState; } nvmlDramEncryptionInfo_v1_t;
typedef nvmlDramEncryptionInfo_v1_t nvmlDramEncryptionInfo_t;
#define nvmlDramEncryptionInfo_v1 NVML_STRUCT_VERSION(DramEncryptionInfo, 1)

/* Licence state of a vGPU guest. */
typedef enum {
  NVML_GRID_LICENSE_FEATURE_CODE_UNKNOWN = 0, NVML_GRID_LICENSE_FEATURE_CODE_VGPU = 1,
  NVML_GRID_LICENSE_FEATURE_CODE_NVIDIA_RTX = 2, NVML_GRID_LICENSE_FEATURE_CODE_GAMING = 3,
  NVML_GRID_LICENSE_FEATURE_CODE_COMPUTE = 4
} nvmlGridLicenseFeatureCode_t;
typedef struct nvmlGridLicenseExpiry_st {
  unsigned int year;
  unsigned short month, day, hour, min, sec;
  unsigned char status;
} nvmlGridLicenseExpiry_t;
typedef struct nvmlGridLicensableFeature_st {
  nvmlGridLicenseFeatureCode_t featureCode;
  unsigned int featureState;
  char licenseInfo[NVML_GRID_LICENSE_BUFFER_SIZE], productName[NVML_GRID_LICENSE_BUFFER_SIZE];
  unsigned int featureEnabled;
  nvmlGridLicenseExpiry_t licenseExpiry;
} nvmlGridLicensableFeature_t;
typedef struct nvmlGridLicensableFeatures_st {
  int isGridLicenseSupported;
  unsigned int licensableFeaturesCount;
  nvmlGridLicensableFeature_t gridLicensableFeatures[NVML_GRID_LICENSE_FEATURE_MAX_COUNT];
} nvmlGridLicensableFeatures_t;

/* ---- errors of the memory ------------------------------------------------------------------- */
typedef enum nvmlMemoryErrorType_enum {
  NVML_MEMORY_ERROR_TYPE_CORRECTED = 0, NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1, NVML_MEMORY_ERROR_TYPE_COUNT
} nvmlMemoryErrorType_t;
typedef enum nvmlEccCounterType_enum {
  NVML_VOLATILE_ECC = 0, NVML_AGGREGATE_ECC = 1, NVML_ECC_COUNTER_TYPE_COUNT
} nvmlEccCounterType_t;
typedef enum nvmlMemoryLocation_enum {
  NVML_MEMORY_LOCATION_L1_CACHE = 0, NVML_MEMORY_LOCATION_L2_CACHE = 1, NVML_MEMORY_LOCATION_DRAM = 2,
  NVML_MEMORY_LOCATION_DEVICE_MEMORY = 2, NVML_MEMORY_LOCATION_REGISTER_FILE = 3,
  NVML_MEMORY_LOCATION_TEXTURE_MEMORY = 4, NVML_MEMORY_LOCATION_TEXTURE_SHM = 5, NVML_MEMORY_LOCATION_CBU = 6,
  NVML_MEMORY_LOCATION_SRAM = 7, NVML_MEMORY_LOCATION_COUNT
} nvmlMemoryLocation_t;
typedef struct nvmlEccErrorCounts_st { unsigned long long l1Cache, l2Cache, deviceMemory, registerFile; } nvmlEccErrorCounts_t;
typedef struct {
  unsigned int version;
  unsigned long long aggregateUncParity, aggregateUncSecDed, aggregateCor;
  unsigned long long volatileUncParity, volatileUncSecDed, volatileCor;
  unsigned long long aggregateUncBucketL2, aggregateUncBucketSm, aggregateUncBucketPcie, aggregateUncBucketMcu,
      aggregateUncBucketOther;
  unsigned int bThresholdExceeded;
} nvmlEccSramErrorStatus_v1_t;
typedef nvmlEccSramErrorStatus_v1_t nvmlEccSramErrorStatus_t;
#define nvmlEccSramErrorStatus_v1 NVML_STRUCT_VERSION(EccSramErrorStatus, 1)
typedef enum nvmlPageRetirementCause_enum {
  NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS = 0, NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR = 1,
  NVML_PAGE_RETIREMENT_CAUSE_COUNT
} nvmlPageRetirementCause_t;
typedef struct nvmlRowRemapperHistogramValues_st { unsigned int max, high, partial, low, none; } nvmlRowRemapperHistogramValues_t;
typedef struct { unsigned int version, bChannelRepairPending, bTpcRepairPending; } nvmlRepairStatus_v1_t;
typedef nvmlRepairStatus_v1_t nvmlRepairStatus_t;
#define nvmlRepairStatus_v1 NVML_STRUCT_VERSION(RepairStatus, 1)
typedef enum nvmlDeviceGpuRecoveryAction_s {
  NVML_GPU_RECOVERY_ACTION_NONE = 0, NVML_GPU_RECOVERY_ACTION_GPU_RESET = 1, NVML_GPU_RECOVERY_ACTION_NODE_REBOOT = 2,
  NVML_GPU_RECOVERY_ACTION_DRAIN_P2P = 3, NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET = 4,
  NVML_GPU_RECOVERY_ACTION_RECOVER_IMEX_DOMAIN = 5
} nvmlDeviceGpuRecoveryAction_t;

/* ---- topology and links --------------------------------------------------------------------- */
typedef enum nvmlGpuLevel_enum {
  NVML_TOPOLOGY_INTERNAL = 0, NVML_TOPOLOGY_SINGLE = 10, NVML_TOPOLOGY_MULTIPLE = 20,
  NVML_TOPOLOGY_HOSTBRIDGE = 30, NVML_TOPOLOGY_NODE = 40, NVML_TOPOLOGY_SYSTEM = 50
} nvmlGpuTopologyLevel_t;
typedef unsigned int nvmlAffinityScope_t;
#define NVML_AFFINITY_SCOPE_NODE 0
#define NVML_AFFINITY_SCOPE_SOCKET 1
typedef enum nvmlGpuP2PStatus_enum {
  NVML_P2P_STATUS_OK = 0, NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED, NVML_P2P_STATUS_GPU_NOT_SUPPORTED,
  NVML_P2P_STATUS_IOH_TOPOLOGY_NOT_SUPPORTED, NVML_P2P_STATUS_DISABLED_BY_REGKEY, NVML_P2P_STATUS_NOT_SUPPORTED,
  NVML_P2P_STATUS_UNKNOWN
} nvmlGpuP2PStatus_t;
typedef enum nvmlGpuP2PCapsIndex_enum {
  NVML_P2P_CAPS_INDEX_READ = 0, NVML_P2P_CAPS_INDEX_WRITE = 1, NVML_P2P_CAPS_INDEX_NVLINK = 2,
  NVML_P2P_CAPS_INDEX_ATOMICS = 3, NVML_P2P_CAPS_INDEX_PCI = 4, NVML_P2P_CAPS_INDEX_UNKNOWN = 5
} nvmlGpuP2PCapsIndex_t;
#define NVML_NVLINK_MAX_LINKS 36
typedef enum nvmlNvLinkCapability_enum {
  NVML_NVLINK_CAP_P2P_SUPPORTED = 0, NVML_NVLINK_CAP_SYSMEM_ACCESS = 1, NVML_NVLINK_CAP_P2P_ATOMICS = 2,
  NVML_NVLINK_CAP_SYSMEM_ATOMICS = 3, NVML_NVLINK_CAP_SLI_BRIDGE = 4, NVML_NVLINK_CAP_VALID = 5, NVML_NVLINK_CAP_COUNT
} nvmlNvLinkCapability_t;
typedef enum nvmlNvLinkErrorCounter_enum {
  NVML_NVLINK_ERROR_DL_REPLAY = 0, NVML_NVLINK_ERROR_DL_RECOVERY = 1, NVML_NVLINK_ERROR_DL_CRC_FLIT = 2,
  NVML_NVLINK_ERROR_DL_CRC_DATA = 3, NVML_NVLINK_ERROR_DL_ECC_DATA = 4, NVML_NVLINK_ERROR_COUNT
} nvmlNvLinkErrorCounter_t;
typedef enum nvmlIntNvLinkDeviceType_enum {
  NVML_NVLINK_DEVICE_TYPE_GPU = 0, NVML_NVLINK_DEVICE_TYPE_IBMNPU = 1, NVML_NVLINK_DEVICE_TYPE_SWITCH = 2,
  NVML_NVLINK_DEVICE_TYPE_UNKNOWN = 0xFF
} nvmlIntNvLinkDeviceType_t;
typedef struct { unsigned int version, isNvleEnabled; } nvmlNvLinkInfo_v1_t;
#define nvmlNvLinkInfo_v1 NVML_STRUCT_VERSION(NvLinkInfo, 1)
#define NVML_NVLINK_FIRMWARE_VERSION_LENGTH 100
typedef struct { unsigned char ucodeType; unsigned int major, minor, subMinor; } nvmlNvlinkFirmwareVersion_t;
typedef struct {
  nvmlNvlinkFirmwareVersion_t firmwareVersion[NVML_NVLINK_FIRMWARE_VERSION_LENGTH];
  unsigned int numValidEntries;
} nvmlNvlinkFirmwareInfo_t;
typedef struct { unsigned int version, isNvleEnabled; nvmlNvlinkFirmwareInfo_t firmwareInfo; } nvmlNvLinkInfo_v2_t;
typedef nvmlNvLinkInfo_v2_t nvmlNvLinkInfo_t;
#define nvmlNvLinkInfo_v2 NVML_STRUCT_VERSION(NvLinkInfo, 2)
typedef enum nvmlBridgeChipType_enum { NVML_BRIDGE_CHIP_PLX = 0, NVML_BRIDGE_CHIP_BRO4 = 1 } nvmlBridgeChipType_t;
#define NVML_MAX_PHYSICAL_BRIDGE 128
typedef struct nvmlBridgeChipInfo_st { nvmlBridgeChipType_t type; unsigned int fwVersion; } nvmlBridgeChipInfo_t;
typedef struct nvmlBridgeChipHierarchy_st {
  unsigned char bridgeCount;
  nvmlBridgeChipInfo_t bridgeChipInfo[NVML_MAX_PHYSICAL_BRIDGE];
} nvmlBridgeChipHierarchy_t;

#define NVML_GPU_FABRIC_UUID_LEN 16
typedef unsigned char nvmlGpuFabricState_t;
#define NVML_GPU_FABRIC_STATE_NOT_SUPPORTED 0
#define NVML_GPU_FABRIC_STATE_NOT_STARTED 1
#define NVML_GPU_FABRIC_STATE_IN_PROGRESS 2
#define NVML_GPU_FABRIC_STATE_COMPLETED 3
#define NVML_GPU_FABRIC_HEALTH_SUMMARY_NOT_SUPPORTED 0
#define NVML_GPU_FABRIC_HEALTH_SUMMARY_HEALTHY 1
#define NVML_GPU_FABRIC_HEALTH_SUMMARY_UNHEALTHY 2
#define NVML_GPU_FABRIC_HEALTH_SUMMARY_LIMITED_CAPACITY 3
typedef struct {
  unsigned char clusterUuid[NVML_GPU_FABRIC_UUID_LEN];
  nvmlReturn_t status;
  unsigned int cliqueId;
  nvmlGpuFabricState_t state;
} nvmlGpuFabricInfo_t;
typedef struct {
  unsigned int version;
  unsigned char clusterUuid[NVML_GPU_FABRIC_UUID_LEN];
  nvmlReturn_t status;
  unsigned int cliqueId;
  nvmlGpuFabricState_t state;
  unsigned int healthMask;
} nvmlGpuFabricInfo_v2_t;
#define nvmlGpuFabricInfo_v2 NVML_STRUCT_VERSION(GpuFabricInfo, 2)
typedef struct {
  unsigned int version;
  unsigned char clusterUuid[NVML_GPU_FABRIC_UUID_LEN];
  nvmlReturn_t status;
  unsigned int cliqueId;
  nvmlGpuFabricState_t state;
  unsigned int healthMask;
  unsigned char healthSummary;
} nvmlGpuFabricInfo_v3_t;
typedef nvmlGpuFabricInfo_v3_t nvmlGpuFabricInfoV_t;
#define nvmlGpuFabricInfo_v3 NVML_STRUCT_VERSION(GpuFabricInfo, 3)

/* ---- confidential computing ----------------------------------------------------------------- */
typedef struct nvmlConfComputeSystemCaps_st { unsigned int cpuCaps, gpusCaps; } nvmlConfComputeSystemCaps_t;
typedef struct nvmlConfComputeSystemState_st { unsigned int environment, ccFeature, devToolsMode; } nvmlConfComputeSystemState_t;
typedef struct { unsigned int version, environment, ccFeature, devToolsMode, multiGpuMode; } nvmlSystemConfComputeSettings_v1_t;
typedef nvmlSystemConfComputeSettings_v1_t nvmlSystemConfComputeSettings_t;
#define nvmlSystemConfComputeSettings_v1 NVML_STRUCT_VERSION(SystemConfComputeSettings, 1)
typedef struct nvmlConfComputeMemSizeInfo_st { unsigned long long protectedMemSizeKib, unprotectedMemSizeKib; } nvmlConfComputeMemSizeInfo_t;

/* ---- events --------------------------------------------------------------------------------- */
#define nvmlEventTypeNone 0x0LL
#define nvmlEventTypeSingleBitEccError 0x1LL
#define nvmlEventTypeDoubleBitEccError 0x2LL
#define nvmlEventTypePState 0x4LL
#define nvmlEventTypeXidCriticalError 0x8LL
#define nvmlEventTypeClock 0x10LL
#define nvmlEventTypePowerSourceChange 0x80LL
#define nvmlEventMigConfigChange 0x100LL
#define nvmlEventTypeSingleBitEccErrorStorm 0x200LL
#define nvmlEventTypeDramRetirementEvent 0x400LL
#define nvmlEventTypeDramRetirementFailure 0x800LL
#define nvmlEventTypeNonFatalPoisonError 0x1000LL
#define nvmlEventTypeFatalPoisonError 0x2000LL
#define nvmlEventTypeGpuUnavailableError 0x4000LL
#define nvmlEventTypeGpuRecoveryAction 0x8000LL
#define nvmlEventTypeAll 0xFF9FLL

typedef struct nvmlEventData_st {
  nvmlDevice_t device;
  unsigned long long eventType;
  unsigned long long eventData;  /* the XID */
  unsigned int gpuInstanceId, computeInstanceId;
} nvmlEventData_t;
/* What nvmlEventSetWait (the first form) fills. */
typedef struct { nvmlDevice_t device; unsigned long long eventType, eventData; } gantryEventDataV1_t;

typedef struct nvmlFieldValue_st {
  unsigned int fieldId, scopeId;
  long long timestamp, latencyUsec;
  nvmlValueType_t valueType;
  nvmlReturn_t nvmlReturn;
  nvmlValue_t value;
} nvmlFieldValue_t;

/* ---- MIG ------------------------------------------------------------------------------------ */
#define NVML_DEVICE_MIG_DISABLE 0
#define NVML_DEVICE_MIG_ENABLE 1
#define NVML_GPU_INSTANCE_PROFILE_1_SLICE 0x0
#define NVML_GPU_INSTANCE_PROFILE_2_SLICE 0x1
#define NVML_GPU_INSTANCE_PROFILE_3_SLICE 0x2
#define NVML_GPU_INSTANCE_PROFILE_4_SLICE 0x3
#define NVML_GPU_INSTANCE_PROFILE_7_SLICE 0x4
#define NVML_GPU_INSTANCE_PROFILE_8_SLICE 0x5
#define NVML_GPU_INSTANCE_PROFILE_6_SLICE 0x6
#define NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1 0x7
#define NVML_GPU_INSTANCE_PROFILE_2_SLICE_REV1 0x8
#define NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2 0x9
#define NVML_GPU_INSTANCE_PROFILE_1_SLICE_GFX 0x0A
#define NVML_GPU_INSTANCE_PROFILE_2_SLICE_GFX 0x0B
#define NVML_GPU_INSTANCE_PROFILE_4_SLICE_GFX 0x0C
#define NVML_GPU_INSTANCE_PROFILE_1_SLICE_NO_ME 0x0D
#define NVML_GPU_INSTANCE_PROFILE_2_SLICE_NO_ME 0x0E
#define NVML_GPU_INSTANCE_PROFILE_1_SLICE_ALL_ME 0x0F
#define NVML_GPU_INSTANCE_PROFILE_2_SLICE_ALL_ME 0x10
#define NVML_GPU_INSTANCE_PROFILE_3_SLICE_GFX 0x11
#define NVML_GPU_INSTANCE_PROFILE_COUNT 0x12
#define NVML_GPU_INSTANCE_PROFILE_CAPS_P2P 0x1
#define NVML_GPU_INSTANCE_PROFILE_CAPS_GFX 0x2
#define NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE 0x0
#define NVML_COMPUTE_INSTANCE_PROFILE_2_SLICE 0x1
#define NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE 0x2
#define NVML_COMPUTE_INSTANCE_PROFILE_4_SLICE 0x3
#define NVML_COMPUTE_INSTANCE_PROFILE_7_SLICE 0x4
#define NVML_COMPUTE_INSTANCE_PROFILE_8_SLICE 0x5
#define NVML_COMPUTE_INSTANCE_PROFILE_6_SLICE 0x6
#define NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE_REV1 0x7
#define NVML_COMPUTE_INSTANCE_PROFILE_7_SLICE_NVL 0x8
#define NVML_COMPUTE_INSTANCE_PROFILE_COUNT 0x9
#define NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED 0x0
#define NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_COUNT 0x1

typedef struct nvmlGpuInstancePlacement_st { unsigned int start, size; } nvmlGpuInstancePlacement_t;
typedef struct nvmlComputeInstancePlacement_st { unsigned int start, size; } nvmlComputeInstancePlacement_t;
typedef struct nvmlGpuInstanceProfileInfo_st {
  unsigned int id, isP2pSupported, sliceCount, instanceCount, multiprocessorCount, copyEngineCount, decoderCount,
      encoderCount, jpegCount, ofaCount;
  unsigned long long memorySizeMB;
} nvmlGpuInstanceProfileInfo_t;
typedef struct nvmlGpuInstanceProfileInfo_v2_st {
  unsigned int version;
  unsigned int id, isP2pSupported, sliceCount, instanceCount, multiprocessorCount, copyEngineCount, decoderCount,
      encoderCount, jpegCount, ofaCount;
  unsigned long long memorySizeMB;
  char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE];
} nvmlGpuInstanceProfileInfo_v2_t;
#define nvmlGpuInstanceProfileInfo_v2 NVML_STRUCT_VERSION(GpuInstanceProfileInfo, 2)
typedef struct nvmlGpuInstanceProfileInfo_v3_st {
  unsigned int version;
  unsigned int id, sliceCount, instanceCount, multiprocessorCount, copyEngineCount, decoderCount, encoderCount,
      jpegCount, ofaCount;
  unsigned long long memorySizeMB;
  char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE];
  unsigned int capabilities;
} nvmlGpuInstanceProfileInfo_v3_t;
#define nvmlGpuInstanceProfileInfo_v3 NVML_STRUCT_VERSION(GpuInstanceProfileInfo, 3)
typedef struct nvmlGpuInstanceInfo_st {
  nvmlDevice_t device;
  unsigned int id, profileId;
  nvmlGpuInstancePlacement_t placement;
} nvmlGpuInstanceInfo_t;
typedef struct nvmlComputeInstanceProfileInfo_st {
  unsigned int id, sliceCount, instanceCount, multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount,
      sharedEncoderCount, sharedJpegCount, sharedOfaCount;
} nvmlComputeInstanceProfileInfo_t;
typedef struct nvmlComputeInstanceProfileInfo_v2_st {
  unsigned int version;
  unsigned int id, sliceCount, instanceCount, multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount,
      sharedEncoderCount, sharedJpegCount, sharedOfaCount;
  char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE];
} nvmlComputeInstanceProfileInfo_v2_t;
#define nvmlComputeInstanceProfileInfo_v2 NVML_STRUCT_VERSION(ComputeInstanceProfileInfo, 2)
typedef struct nvmlComputeInstanceProfileInfo_v3_st {
  unsigned int version;
  unsigned int id, sliceCount, instanceCount, multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount,
      sharedEncoderCount, sharedJpegCount, sharedOfaCount;
  char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE];
  unsigned int capabilities;
} nvmlComputeInstanceProfileInfo_v3_t;
#define nvmlComputeInstanceProfileInfo_v3 NVML_STRUCT_VERSION(ComputeInstanceProfileInfo, 3)
typedef struct nvmlComputeInstanceInfo_st {
  nvmlDevice_t device;
  nvmlGpuInstance_t gpuInstance;
  unsigned int id, profileId;
  nvmlComputeInstancePlacement_t placement;
} nvmlComputeInstanceInfo_t;

/* ---- profiling ------------------------------------------------------------------------------ */
typedef struct { unsigned int version, isSupportedDevice; } nvmlGpmSupport_t;

/* clang-format on */

#ifdef __cplusplus
}
#endif
#endif
