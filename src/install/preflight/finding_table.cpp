// SPDX-License-Identifier: Apache-2.0
#include "install/preflight/judge.hpp"

#include <algorithm>
#include <array>

namespace gantry::preflight {
namespace {

// What would end somebody's work, or what cannot be tried at all, cannot be ignored.
constexpr auto kMay = Ignorable::Yes;
constexpr auto kNo = Ignorable::No;

constexpr std::array kTable{
    // the request
    KnownFinding{"version-missing", kNo, "no version was given"},
    KnownFinding{"version-invalid", kNo, "not a version of the driver"},
    KnownFinding{"version-is-branch", kNo, "a branch where a version is needed"},
    KnownFinding{"run-file-other-cpu", kMay, "the archive is for another processor"},
    KnownFinding{"run-file-other-version", kMay, "the archive has another version"},
    KnownFinding{"vgpu-host-driver-requested", kNo, "the archive is for vGPU hosts"},
    KnownFinding{"file-missing", kNo, "a file that was named does not exist"},
    KnownFinding{"source-unclear", kNo, "a local archive and a URL were given"},
    KnownFinding{"download-without-digest", kNo, "nothing to compare a download with"},
    KnownFinding{"digest-invalid", kNo, "not a SHA-256"},
    KnownFinding{"signing-incomplete", kNo, "a key without certificate, or the reverse"},
    KnownFinding{"signing-key-on-node", kMay, "a private key is on the machine"},
    KnownFinding{"distribution-unsupported", kNo, "the distribution has no packages of it"},
    // the GPUs
    KnownFinding{"wsl", kNo, "the driver belongs into Windows"},
    KnownFinding{"no-gpu", kMay, "there is no NVIDIA GPU"},
    KnownFinding{"gpus-for-virtual-machines", kMay, "VFIO holds every GPU"},
    KnownFinding{"gpu-for-virtual-machines", kMay, "VFIO holds a GPU"},
    KnownFinding{"gpu-lost", kMay, "a GPU fell off the bus"},
    KnownFinding{"gpu-unknown", kMay, "the generation of a GPU is not known"},
    KnownFinding{"branch-unsupported", kMay, "the branch does not drive a GPU"},
    KnownFinding{"flavour-unsupported", kMay, "the kernel modules do not drive a GPU"},
    KnownFinding{"flavour", kMay, "which kernel modules will be installed"},
    KnownFinding{"vgpu-needs-guest-driver", kMay, "a vGPU needs the guest driver"},
    KnownFinding{"vgpu-host-older", kMay, "the vGPU host is older than the guest driver"},
    KnownFinding{"guest-driver-on-whole-gpu", kMay, "the guest driver on a whole GPU"},
    KnownFinding{"fabric-manager", kMay, "NVSwitches need the fabric manager"},
    // other drivers
    KnownFinding{"nouveau-holds-gpu", kMay, "nouveau holds a GPU"},
    KnownFinding{"nouveau-loaded", kMay, "nouveau is loaded"},
    KnownFinding{"nova-holds-gpu", kMay, "nova holds a GPU"},
    KnownFinding{"other-driver-holds-gpu", kMay, "another driver holds a GPU"},
    KnownFinding{"framebuffer-console", kMay, "a framebuffer shows the console on a GPU"},
    // the kernel
    KnownFinding{"kernel-unknown", kMay, "the kernel's release cannot be read"},
    KnownFinding{"headers-missing", kMay, "no headers of the kernel"},
    KnownFinding{"headers-mismatch", kMay, "headers that do not fit the kernel"},
    KnownFinding{"compiler-missing", kMay, "no compiler"},
    KnownFinding{"compiler-mismatch", kMay, "another compiler than the kernel's"},
    KnownFinding{"compiler-chosen", kMay, "not the default compiler will be used"},
    KnownFinding{"make-missing", kMay, "make is not installed"},
    KnownFinding{"linker-missing", kMay, "ld is not installed"},
    KnownFinding{"kernel-newer-than-driver", kMay, "the branch may not compile for the kernel"},
    KnownFinding{"modules-disabled", kNo, "the kernel loads no modules"},
    KnownFinding{"unsigned-module-refused", kMay, "the kernel accepts signed modules only"},
    KnownFinding{"modules-will-be-signed", kMay, "the modules will be signed"},
    KnownFinding{"precompiled-missing", kNo, "no modules where they should be"},
    KnownFinding{"precompiled-damaged", kNo, "a module that cannot be read"},
    KnownFinding{"precompiled-other-kernel", kNo, "a module for another kernel"},
    KnownFinding{"precompiled-other-driver", kNo, "a module of another driver"},
    KnownFinding{"modprobe-forbids-nvidia", kMay, "modprobe is told not to load nvidia"},
    KnownFinding{"newer-kernel-installed", kMay, "a newer kernel waits for a reboot"},
    // what is installed and in use
    KnownFinding{"driver-installed", kMay, "a driver of the same kind is installed"},
    KnownFinding{"installed-by-deb", kMay, "packages installed a driver"},
    KnownFinding{"installed-by-rpm", kMay, "packages installed a driver"},
    KnownFinding{"installed-by-run", kMay, "NVIDIA's archive installed a driver"},
    KnownFinding{"installed-by-google", kMay, "Google's installer installed a driver"},
    KnownFinding{"installed-by-container", kMay, "a driver container is at work"},
    KnownFinding{"installed-by-unknown", kMay, "a driver is there, by whomever"},
    KnownFinding{"vgpu-host-driver", kNo, "the driver of a vGPU host is installed"},
    KnownFinding{"host-driver-beside-container", kMay, "a driver beside NVIDIA's container"},
    KnownFinding{"driver-will-be-replaced", kMay, "the loaded driver will be unloaded"},
    KnownFinding{"gpu-in-use", kNo, "a process uses the driver"},
    KnownFinding{"driver-service", kMay, "a daemon of the driver will be restarted"},
    KnownFinding{"container-has-old-driver", kMay, "a container has the driver's files"},
    KnownFinding{"module-used-by-other", kNo, "another module uses the driver's"},
    KnownFinding{"module-busy", kNo, "a module is in use"},
    KnownFinding{"kernel-cannot-unload", kNo, "the kernel cannot unload modules"},
    // the machine
    KnownFinding{"cpu-unsupported", kNo, "no driver for this processor"},
    KnownFinding{"not-root", kNo, "not root"},
    KnownFinding{"user-namespace", kNo, "root of a user namespace only"},
    KnownFinding{"capability-missing", kMay, "a capability is missing"},
    KnownFinding{"disk-full", kMay, "too little room"},
    KnownFinding{"directory-read-only", kMay, "a place that cannot be written to"},
    KnownFinding{"directory-no-exec", kMay, "a place whose programs cannot be started"},
    KnownFinding{"etc-read-only", kMay, "/etc cannot be written to"},
    KnownFinding{"memory-low", kMay, "too little memory to build"},
    KnownFinding{"no-glibc", kMay, "no glibc"},
    KnownFinding{"glibc-old", kMay, "an old glibc"},
    KnownFinding{"clock-behind", kMay, "the clock is behind"},
    KnownFinding{"clock-ahead", kMay, "the clock is ahead"},
    KnownFinding{"clock-uncertain", kMay, "the clock or a file has a wrong time"},
};

}  // namespace

std::span<const KnownFinding> known_findings() {
  return kTable;
}

const KnownFinding* find_known_finding(std::string_view code) {
  const auto found = std::find_if(kTable.begin(), kTable.end(),
                                  [&](const KnownFinding& known) { return known.code == code; });
  return found == kTable.end() ? nullptr : &*found;
}

}  // namespace gantry::preflight
