// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/kernel_log.hpp"

#include "sim/machine/image.hpp"
#include "sim/machine/tree_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::sim {
namespace {

struct XidText {
  std::uint32_t xid;
  std::string_view text;
};

// The driver's text after pid and name; the numbers are from one real log or zero.
constexpr std::array kXidTexts{
    XidText{13, "Graphics SM Warp Exception on (GPC 0, TPC 0, SM 0): Out Of Range Address"},
    XidText{31,
            "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ "
            "0x7f00_00000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ"},
    XidText{43, "Ch 00000008"},
    XidText{45, "Ch 00000008"},
    XidText{48,
            "An uncorrectable double bit error (DBE) has been detected on GPU in the "
            "framebuffer at partition 0, subpartition 0."},
    XidText{63, "Row Remapper: New row marked for remapping, reset gpu to activate."},
    XidText{64, "Row Remapper: Failed to record a row for remapping."},
    XidText{74, "NVLink: fatal error detected on link 0(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)"},
    XidText{79, "GPU has fallen off the bus."},
    XidText{92, "High single-bit ECC error rate"},
    XidText{94, "Contained: SM (0x1). RST: No, D-RST: No"},
    XidText{95, "Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No"},
    XidText{119,
            "Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function "
            "76 (GSP_RM_CONTROL) (0x2080 0x4)."},
    XidText{120, "GSP task exception: load access fault (cause:0x5)"},
    XidText{140, "An unrecovered ECC error has been detected"},
    XidText{154, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"},
};

class Log {
 public:
  void add(std::string_view text) {
    text_ += fmt::format("[{:>5}.{:06}] {}\n", micros_ / 1'000'000, micros_ % 1'000'000, text);
    micros_ = micros_ == 0 ? 8'114'203 : micros_ + 20'011;  // modules come with udev
  }
  std::string text() { return std::move(text_); }

 private:
  std::string text_;
  std::uint64_t micros_ = 0;
};

void add_driver(Log& log, const Machine& m) {
  const auto& d = m.driver;
  const bool open = d.flavour == Flavour::Open;
  log.add("nvidia: loading out-of-tree module taints kernel.");
  if (!open) log.add("nvidia: module license 'NVIDIA' taints kernel.");
  if (!d.module_signed) {
    log.add(
        "nvidia: module verification failed: signature and/or required key missing - tainting "
        "kernel");
  }
  if (d.nvlink_major != 0)
    log.add(fmt::format("nvidia-nvlink: Nvlink Core is being initialized, major device number {}",
                        d.nvlink_major));
  log.add(fmt::format(
      "NVRM: loading {}  {}  {}",
      open ? "NVIDIA UNIX Open Kernel Module for x86_64" : "NVIDIA UNIX x86_64 Kernel Module",
      d.module_version, d.build));
  if (d.uvm_major != 0)
    log.add(fmt::format("nvidia-uvm: Loaded the UVM driver, major device number {}.", d.uvm_major));
}

void add_mismatch(Log& log, const Driver& d) {
  log.add(fmt::format("NVRM: API mismatch: the client has the version {}, but", d.version));
  log.add(fmt::format("NVRM: this kernel module has the version {}.", d.module_version));
}

}  // namespace

std::string log_name(std::uint32_t domain, std::uint32_t bus, std::uint32_t device) {
  return fmt::format("PCI:{:04x}:{:02x}:{:02x}", domain, bus, device);
}

std::string xid_line(const std::string& where, std::uint32_t xid, std::uint32_t driver_branch) {
  const auto* known = std::find_if(kXidTexts.begin(), kXidTexts.end(),
                                   [&](const auto& row) { return row.xid == xid; });
  const std::string_view text = known != kXidTexts.end() ? known->text : "Ch 00000008";
  const auto* process = driver_branch >= 470   ? ", pid='<unknown>', name=<unknown>"
                        : driver_branch >= 440 ? ", pid=0"
                                               : "";
  return fmt::format("NVRM: Xid ({}): {}{}, {}", where, xid, process, text);
}

std::string boot_log(const Machine& m) {
  Log log;
  log.add(fmt::format("Linux version {} {}", m.kernel_release, m.kernel_version));
  const auto& d = m.driver;
  if (driver_loaded(m)) {
    add_driver(log, m);
    if (!d.version.empty() && d.version != d.module_version) add_mismatch(log, d);
    for (const auto& gpu : m.gpus) {
      const auto& at = gpu.pci.address;
      const auto where = log_name(at.domain, at.bus, at.device);
      if (!gpu.lost) continue;
      log.add(fmt::format("NVRM: GPU at {}: {}", where, gpu.uuid));
      log.add(xid_line(where, 79, driver_major(d.module_version)));
    }
  }
  if (!driver_loaded(m) && m.secure_boot && !d.module_signed && !d.kernel_objects.empty())
    log.add("Loading of unsigned module is rejected");
  return log.text();
}

}  // namespace gantry::sim
