// SPDX-License-Identifier: Apache-2.0
#include "install/preflight/judge.hpp"

#include <algorithm>
#include <array>

namespace gantry::preflight {
namespace {

// What would end somebody's work, or what cannot be tried at all, cannot be ignored.
constexpr auto kYes = Ignorable::Yes;
constexpr auto kNever = Ignorable::No;

constexpr std::array kTable{
    // the request
    KnownFinding{"version-missing", kNever, "no version was given"},
    KnownFinding{"version-invalid", kNever, "not a version of the driver"},
    KnownFinding{"version-is-branch", kNever, "a branch where a version is needed"},
    KnownFinding{"run-file-other-cpu", kYes, "the archive is for another processor"},
    KnownFinding{"run-file-other-version", kYes, "the archive has another version"},
    KnownFinding{"vgpu-host-driver-requested", kNever, "the archive is for vGPU hosts"},
    KnownFinding{"file-missing", kNever, "a file that was named does not exist"},
    KnownFinding{"source-unclear", kNever, "a local archive and a URL were given"},
    KnownFinding{"download-without-digest", kNever, "nothing to compare a download with"},
    KnownFinding{"digest-invalid", kNever, "not a SHA-256"},
    KnownFinding{"signing-incomplete", kNever, "a key without certificate, or the reverse"},
    KnownFinding{"signing-key-on-node", kYes, "a private key is on the machine"},
    KnownFinding{"distribution-unsupported", kNever, "the distribution has no packages of it"},
    // the GPUs
    KnownFinding{"wsl", kNever, "the driver belongs into Windows"},
    KnownFinding{"no-gpu", kYes, "there is no NVIDIA GPU"},
    KnownFinding{"gpus-for-virtual-machines", kYes, "VFIO holds every GPU"},
    KnownFinding{"gpu-for-virtual-machines", kYes, "VFIO holds a GPU"},
    KnownFinding{"gpu-lost", kYes, "a GPU fell off the bus"},
    KnownFinding{"gpu-unknown", kYes, "the generation of a GPU is not known"},
    KnownFinding{"branch-unsupported", kYes, "the branch does not drive a GPU"},
    KnownFinding{"flavour-unsupported", kYes, "the kernel modules do not drive a GPU"},
    KnownFinding{"flavour", kYes, "which kernel modules will be installed"},
    KnownFinding{"vgpu-needs-guest-driver", kYes, "a vGPU needs the guest driver"},
    KnownFinding{"vgpu-host-older", kYes, "the vGPU host is older than the guest driver"},
    KnownFinding{"guest-driver-on-whole-gpu", kYes, "the guest driver on a whole GPU"},
    KnownFinding{"fabric-manager", kYes, "NVSwitches need the fabric manager"},
    // other drivers
    KnownFinding{"nouveau-holds-gpu", kYes, "nouveau holds a GPU"},
    KnownFinding{"nouveau-loaded", kYes, "nouveau is loaded"},
    KnownFinding{"nova-holds-gpu", kYes, "nova holds a GPU"},
    KnownFinding{"other-driver-holds-gpu", kYes, "another driver holds a GPU"},
    KnownFinding{"framebuffer-console", kYes, "a framebuffer shows the console on a GPU"},
    // the kernel
    KnownFinding{"kernel-unknown", kYes, "the kernel's release cannot be read"},
    KnownFinding{"headers-missing", kYes, "no headers of the kernel"},
    KnownFinding{"headers-mismatch", kYes, "headers that do not fit the kernel"},
    KnownFinding{"compiler-missing", kYes, "no compiler"},
    KnownFinding{"compiler-mismatch", kYes, "another compiler than the kernel's"},
    KnownFinding{"compiler-chosen", kYes, "not the default compiler will be used"},
    KnownFinding{"make-missing", kYes, "make is not installed"},
    KnownFinding{"linker-missing", kYes, "ld is not installed"},
    KnownFinding{"kernel-newer-than-driver", kYes, "the branch may not compile for the kernel"},
    KnownFinding{"modules-disabled", kNever, "the kernel loads no modules"},
    KnownFinding{"unsigned-module-refused", kYes, "the kernel accepts signed modules only"},
    KnownFinding{"modules-will-be-signed", kYes, "the modules will be signed"},
    KnownFinding{"precompiled-missing", kNever, "no modules where they should be"},
    KnownFinding{"precompiled-damaged", kNever, "a module that cannot be read"},
    KnownFinding{"precompiled-other-kernel", kNever, "a module for another kernel"},
    KnownFinding{"precompiled-other-driver", kNever, "a module of another driver"},
    KnownFinding{"modprobe-forbids-nvidia", kYes, "modprobe is told not to load nvidia"},
    KnownFinding{"newer-kernel-installed", kYes, "a newer kernel waits for a reboot"},
    // what is installed and in use
    KnownFinding{"driver-installed", kYes, "a driver of the same kind is installed"},
    KnownFinding{"installed-by-deb", kYes, "packages installed a driver"},
    KnownFinding{"installed-by-rpm", kYes, "packages installed a driver"},
    KnownFinding{"installed-by-run", kYes, "NVIDIA's archive installed a driver"},
    KnownFinding{"installed-by-google", kYes, "Google's installer installed a driver"},
    KnownFinding{"installed-by-container", kYes, "a driver container is at work"},
    KnownFinding{"installed-by-unknown", kYes, "a driver is there, by whomever"},
    KnownFinding{"vgpu-host-driver", kNever, "the driver of a vGPU host is installed"},
    KnownFinding{"host-driver-beside-container", kYes, "a driver beside NVIDIA's container"},
    KnownFinding{"driver-will-be-replaced", kYes, "the loaded driver will be unloaded"},
    KnownFinding{"gpu-in-use", kNever, "a process uses the driver"},
    KnownFinding{"driver-service", kYes, "a daemon of the driver will be restarted"},
    KnownFinding{"container-has-old-driver", kYes, "a container has the driver's files"},
    KnownFinding{"module-used-by-other", kNever, "another module uses the driver's"},
    KnownFinding{"module-busy", kNever, "a module is in use"},
    KnownFinding{"kernel-cannot-unload", kNever, "the kernel cannot unload modules"},
    // the machine
    KnownFinding{"cpu-unsupported", kNever, "no driver for this processor"},
    KnownFinding{"not-root", kNever, "not root"},
    KnownFinding{"user-namespace", kNever, "root of a user namespace only"},
    KnownFinding{"capability-missing", kYes, "a capability is missing"},
    KnownFinding{"disk-full", kYes, "too little room"},
    KnownFinding{"directory-read-only", kYes, "a place that cannot be written to"},
    KnownFinding{"directory-no-exec", kYes, "a place whose programs cannot be started"},
    KnownFinding{"etc-read-only", kYes, "/etc cannot be written to"},
    KnownFinding{"memory-low", kYes, "too little memory to build"},
    KnownFinding{"no-glibc", kYes, "no glibc"},
    KnownFinding{"glibc-old", kYes, "an old glibc"},
    KnownFinding{"clock-behind", kYes, "the clock is behind"},
    KnownFinding{"clock-ahead", kYes, "the clock is ahead"},
    KnownFinding{"clock-uncertain", kYes, "the clock or a file has a wrong time"},
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
