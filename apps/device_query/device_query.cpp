// SPDX-License-Identifier: Apache-2.0
#include "device_query/device_query.hpp"

#include "device_query/report_internal.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace gantry::workload {
namespace {

constexpr const char* kName = "gantry-device-query";

// What each sample prints after its name, and in front of each pair of GPUs.
struct SampleText {
  const char* title;
  const char* peer;
};
constexpr SampleText kDriverApi{
    .title = "CUDA Device Query (Driver API) statically linked version \n",
    .peer = "Peer-to-Peer (P2P) access"};
constexpr SampleText kRuntimeApi{
    .title = " CUDA Device Query (Driver API) without the CUDA runtime\n\n", .peer = "Peer access"};

Sample sample_of(const std::string& name) {
  return name == "deviceQuery" ? Sample::DeviceQuery : Sample::DeviceQueryDrv;
}

const SampleText& text_for(Sample sample) {
  return sample == Sample::DeviceQuery ? kRuntimeApi : kDriverApi;
}

Result<Report> read_device(const Cuda& cuda, int ordinal) {
  Report report;
  GANTRY_CHECK(cuda.check(cuda.cuDeviceGet(&report.device, ordinal), "cuDeviceGet"));
  char name[256] = "";
  GANTRY_CHECK(
      cuda.check(cuda.cuDeviceGetName(name, sizeof name, report.device), "cuDeviceGetName"));
  report.ordinal = ordinal;
  report.name = name;
  GANTRY_CHECK(cuda.check(cuda.cuDriverGetVersion(&report.driver_version), "cuDriverGetVersion"));
  GANTRY_CHECK(
      cuda.check(cuda.cuDeviceTotalMem_v2(&report.total_bytes, report.device), "cuDeviceTotalMem"));
  // An attribute that an older driver does not have reads as 0, as in the sample.
  for (int i = 1; i < kAttributes; ++i) {
    int value = 0;
    if (cuda.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(i), report.device) ==
        CUDA_SUCCESS)
      report.value[static_cast<std::size_t>(i)] = value;
  }
  if (report[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] == 0) {
    return Error(Errc::Corrupt,
                 fmt::format("device {} has no compute capability\n  cause: {} did not answer "
                             "for it; the GPU may be lost\n  remedy: dmesg | grep -i nvrm",
                             ordinal, cuda.library));
  }
  return report;
}

void print_peers(const Cuda& cuda, const std::vector<Report>& reports, Sample sample,
                 std::FILE* out) {
  for (const Report& from : reports) {
    for (const Report& to : reports) {
      int access = 0;
      if (&from == &to ||
          cuda.cuDeviceCanAccessPeer(&access, from.device, to.device) != CUDA_SUCCESS)
        continue;
      fmt::print(out, "> {} from {} (GPU{}) -> {} (GPU{}) : {}\n", text_for(sample).peer, from.name,
                 from.ordinal, to.name, to.ordinal, access != 0 ? "Yes" : "No");
    }
  }
}

void print_summary(const std::vector<Report>& reports, std::FILE* out) {
  fmt::print(out,
             "\ndeviceQuery, CUDA Driver = libcuda, CUDA Driver Version = {}, "
             "CUDA Runtime Version = none, NumDevs = {}\n",
             version_text(reports.front().driver_version), reports.size());
}

Status run(const Options& options, Sample sample, std::FILE* out) {
  GANTRY_TRY(const Cuda cuda, open_cuda(options.library));
  GANTRY_CHECK(cuda.check(cuda.cuInit(0), "cuInit"));
  int count = 0;
  GANTRY_CHECK(cuda.check(cuda.cuDeviceGetCount(&count), "cuDeviceGetCount"));
  if (count == 0) return cuda.check(CUDA_ERROR_NO_DEVICE, "cuDeviceGetCount");
  fmt::print(out, "Detected {} CUDA Capable device(s)\n", count);
  std::vector<Report> reports;
  for (int i = 0; i < count; ++i) {
    GANTRY_TRY(Report report, read_device(cuda, i));
    print_report(report, sample, out);
    reports.push_back(std::move(report));
  }
  if (count > 1) print_peers(cuda, reports, sample, out);
  if (sample == Sample::DeviceQuery) print_summary(reports, out);
  return {};
}

}  // namespace

int device_query(const Options& options, std::FILE* out, std::FILE* err) {
  const std::string name = options.called.empty() ? kName : options.called;
  const Sample sample = sample_of(name);
  fmt::print(out, "{} Starting...\n\n{}", name, text_for(sample).title);
  const Status status = run(options, sample, out);
  fmt::print(out, "Result = {}\n", status.ok() ? "PASS" : "FAIL");
  std::fflush(out);
  if (status.ok()) return 0;
  print_error(err, name, status.error());
  return 1;
}

}  // namespace gantry::workload
