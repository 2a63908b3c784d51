// SPDX-License-Identifier: Apache-2.0
#include "install/preflight/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::preflight {
namespace {

// What would end somebody's work, or what cannot be tried at all, cannot be ignored.
constexpr auto kYes = Ignorable::Yes;
constexpr auto kNever = Ignorable::No;

constexpr std::array kTable{
    // the request
    KnownFinding{"version-missing", kNever, "no version was given",
                 "give --version 580.159.04, or --run with a file that has NVIDIA's name"},
    KnownFinding{"version-invalid", kNever, "not a version of the driver",
                 "a version looks like 580.159.04 or 430.26"},
    KnownFinding{"version-is-branch", kNever, "a branch where a version is needed",
                 "give the whole version, or use --source packages"},
    KnownFinding{"run-file-other-cpu", kYes, "the archive is for another processor",
                 "use the archive for this processor"},
    KnownFinding{"run-file-other-version", kYes, "the archive has another version",
                 "give the archive's version, or the other archive"},
    KnownFinding{"vgpu-host-driver-requested", kNever, "the archive is for vGPU hosts",
                 "for containers use NVIDIA-Linux-x86_64-VERSION.run"},
    KnownFinding{"file-missing", kNever, "a file that was named does not exist",
                 "paths are those of the machine below --host-root"},
    KnownFinding{"source-unclear", kNever, "a local archive and a URL were given",
                 "give --run or --url, not both"},
    KnownFinding{"download-without-digest", kNever, "nothing to compare a download with",
                 "give --sha256 from a source that you trust"},
    KnownFinding{"digest-invalid", kNever, "not a SHA-256",
                 "give the 64 hexadecimal digits of sha256sum"},
    KnownFinding{"signing-incomplete", kNever, "a key without certificate, or the reverse",
                 "give --sign-key and --sign-certificate"},
    KnownFinding{"signing-key-on-node", kYes, "a private key is on the machine",
                 "sign on a build machine, install with --source precompiled"},
    KnownFinding{"distribution-unsupported", kNever, "the distribution has no packages of it",
                 "use --source run"},
    // the GPUs
    KnownFinding{"wsl", kNever, "the driver belongs into Windows", "install the driver in Windows"},
    KnownFinding{"no-gpu", kYes, "there is no NVIDIA GPU",
                 "lspci -d 10de: must show one; select only nodes with GPUs"},
    KnownFinding{"gpus-for-virtual-machines", kYes, "VFIO holds every GPU",
                 "gantry vfio release ADDRESS gives one back to containers"},
    KnownFinding{"gpu-for-virtual-machines", kYes, "VFIO holds a GPU",
                 "nothing to do: the driver leaves it alone"},
    KnownFinding{"gpu-lost", kYes, "a GPU fell off the bus",
                 "reboot; if it comes back: power cables, riser, temperature"},
    KnownFinding{"gpu-unknown", kYes, "the generation of a GPU is not known",
                 "look into NVIDIA's list of supported GPUs"},
    KnownFinding{"branch-unsupported", kYes, "the branch does not drive a GPU",
                 "the finding names the branches that drive every GPU here"},
    KnownFinding{"flavour-unsupported", kYes, "the kernel modules do not drive a GPU",
                 "leave --flavour out, or give the one that the finding names"},
    KnownFinding{"flavour", kYes, "which kernel modules will be installed",
                 "nothing to do; --flavour chooses"},
    KnownFinding{"vgpu-needs-guest-driver", kYes, "a vGPU needs the guest driver",
                 "--source grid with NVIDIA-Linux-x86_64-VERSION-grid.run"},
    KnownFinding{"vgpu-host-older", kYes, "the vGPU host is older than the guest driver",
                 "use a guest driver of the host's branch"},
    KnownFinding{"guest-driver-on-whole-gpu", kYes, "the guest driver on a whole GPU",
                 "--source run with NVIDIA-Linux-x86_64-VERSION.run"},
    KnownFinding{"fabric-manager", kYes, "NVSwitches need the fabric manager",
                 "install it in the driver's version, then start its service"},
    // other drivers
    KnownFinding{"nouveau-holds-gpu", kYes, "nouveau holds a GPU",
                 "forbid it in modprobe.d, make a new initramfs, reboot"},
    KnownFinding{"nouveau-loaded", kYes, "nouveau is loaded",
                 "forbid it in modprobe.d, make a new initramfs, reboot"},
    KnownFinding{"nova-holds-gpu", kYes, "nova holds a GPU",
                 "forbid it in modprobe.d, make a new initramfs, reboot"},
    KnownFinding{"other-driver-holds-gpu", kYes, "another driver holds a GPU",
                 "forbid it in modprobe.d, make a new initramfs, reboot"},
    KnownFinding{"framebuffer-console", kYes, "a framebuffer shows the console on a GPU",
                 "have SSH or a serial console at hand"},
    // the kernel
    KnownFinding{"kernel-unknown", kYes, "the kernel's release cannot be read",
                 "mount the host's /proc below --host-root"},
    KnownFinding{"headers-missing", kYes, "no headers of the kernel",
                 "install the headers, or use --source precompiled"},
    KnownFinding{"headers-mismatch", kYes, "headers that do not fit the kernel",
                 "install the headers of the running kernel, or reboot into theirs"},
    KnownFinding{"compiler-missing", kYes, "no compiler",
                 "install gcc and make, or use --source precompiled"},
    KnownFinding{"compiler-mismatch", kYes, "another compiler than the kernel's",
                 "install the compiler of the kernel, or use --source precompiled"},
    KnownFinding{"compiler-chosen", kYes, "not the default compiler will be used",
                 "nothing to do: the kernel's compiler is used"},
    KnownFinding{"make-missing", kYes, "make is not installed", "install make"},
    KnownFinding{"linker-missing", kYes, "ld is not installed", "install binutils"},
    KnownFinding{"kernel-newer-than-driver", kYes, "the branch may not compile for the kernel",
                 "a newer branch, or --patch FILE"},
    KnownFinding{"modules-disabled", kNever, "the kernel loads no modules",
                 "reboot without kernel.modules_disabled=1"},
    KnownFinding{"unsigned-module-refused", kYes, "the kernel accepts signed modules only",
                 "signed packages, or modules signed elsewhere and a key in MOK"},
    KnownFinding{"modules-will-be-signed", kYes, "the modules will be signed",
                 "enrol the certificate, if the kernel does not trust it yet"},
    KnownFinding{"precompiled-missing", kNever, "no modules where they should be",
                 "--modules DIRECTORY with DIRECTORY/KERNEL/nvidia.ko"},
    KnownFinding{"precompiled-damaged", kNever, "a module that cannot be read", "copy it again"},
    KnownFinding{"precompiled-without-digest", kNever, "no list of the modules' digests",
                 "sha256sum *.ko > SHA256SUMS where they were built"},
    KnownFinding{"precompiled-other-digest", kNever, "a module that is not the one in the list",
                 "copy it again from where it was built"},
    KnownFinding{"precompiled-other-kernel", kNever, "a module for another kernel",
                 "build them for the kernel that the finding names"},
    KnownFinding{"precompiled-other-driver", kNever, "a module of another driver",
                 "build them from the archive that --run names"},
    KnownFinding{"modprobe-forbids-nvidia", kYes, "modprobe is told not to load nvidia",
                 "comment the line out, make a new initramfs"},
    KnownFinding{"newer-kernel-installed", kYes, "a newer kernel waits for a reboot",
                 "gantry driver build --kernel RELEASE before the reboot"},
    // what is installed and in use
    KnownFinding{"driver-installed", kYes, "a driver of the same kind is installed",
                 "nothing to do: it is replaced or kept"},
    KnownFinding{"installed-by-deb", kYes, "packages installed a driver",
                 "--source packages, or purge the packages first"},
    KnownFinding{"installed-by-rpm", kYes, "packages installed a driver",
                 "--source packages, or remove the packages first"},
    KnownFinding{"installed-by-run", kYes, "NVIDIA's archive installed a driver",
                 "nvidia-uninstall --silent"},
    KnownFinding{"installed-by-google", kYes, "Google's installer installed a driver",
                 "delete Google's DaemonSet, or --directory with its directory"},
    KnownFinding{"installed-by-container", kYes, "a driver container is at work",
                 "driver.enabled=false for gpu-operator, or --source nvidia-container"},
    KnownFinding{"installed-by-unknown", kYes, "a driver is there, by whomever",
                 "find out who did; remove it there"},
    KnownFinding{"vgpu-host-driver", kNever, "the driver of a vGPU host is installed",
                 "keep the machine for vGPUs, or remove that driver first"},
    KnownFinding{"host-driver-beside-container", kYes, "a driver beside NVIDIA's container",
                 "remove the host's driver, or do without the container"},
    KnownFinding{"driver-will-be-replaced", kYes, "the loaded driver will be unloaded",
                 "nothing to do; no process may use the GPUs then"},
    KnownFinding{"gpu-in-use", kNever, "a process uses the driver",
                 "end it, evict its pod, or wait with --drain"},
    KnownFinding{"driver-service", kYes, "a daemon of the driver will be restarted",
                 "nothing to do: it is stopped and started again"},
    KnownFinding{"container-has-old-driver", kYes, "a container has the driver's files",
                 "start the container again afterwards"},
    KnownFinding{"module-used-by-other", kNever, "another module uses the driver's",
                 "rmmod the module that the finding names"},
    KnownFinding{"module-busy", kNever, "a module is in use",
                 "fuser -v /dev/nvidia* shows by whom; if nobody: reboot"},
    KnownFinding{"kernel-cannot-unload", kNever, "the kernel cannot unload modules",
                 "forbid nvidia in modprobe.d, reboot, install"},
    // the machine
    KnownFinding{"cpu-unsupported", kNever, "no driver for this processor",
                 "x86_64 and aarch64 have drivers"},
    KnownFinding{"not-root", kNever, "not root", "sudo; in a pod: runAsUser: 0"},
    KnownFinding{"user-namespace", kNever, "root of a user namespace only",
                 "in a pod hostUsers: true; no rootless container"},
    KnownFinding{"capability-missing", kYes, "a capability is missing",
                 "in a pod privileged: true, in a namespace that allows it"},
    KnownFinding{"disk-full", kYes, "too little room", "make room, or another --directory"},
    KnownFinding{"directory-read-only", kYes, "a place that cannot be written to",
                 "--directory /var/lib/nvidia, or another that can be written to"},
    KnownFinding{"directory-no-exec", kYes, "a place whose programs cannot be started",
                 "mount it with exec, or another --directory"},
    KnownFinding{"etc-read-only", kYes, "/etc cannot be written to",
                 "containers are not concerned; the host needs LD_LIBRARY_PATH"},
    KnownFinding{"memory-low", kYes, "too little memory to build",
                 "free memory, raise the pod's limit, or --source precompiled"},
    KnownFinding{"no-glibc", kYes, "no glibc", "--source nvidia-container"},
    KnownFinding{"glibc-old", kYes, "an old glibc", "an older branch, or a newer system"},
    KnownFinding{"clock-behind", kYes, "the clock is behind",
                 "timedatectl set-ntp true, then hwclock --systohc"},
    KnownFinding{"clock-ahead", kYes, "the clock is ahead",
                 "timedatectl set-ntp true, then hwclock --systohc"},
    KnownFinding{"clock-uncertain", kYes, "the clock or a file has a wrong time",
                 "compare timedatectl with another clock"},
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

std::string known_findings_markdown() {
  std::string out = "| finding | what it says | what helps | `--ignore` |\n|---|---|---|---|\n";
  for (const auto& known : kTable)
    out += fmt::format("| `{}` | {} | {} | {} |\n", known.code, known.meaning, known.helps,
                       known.ignorable == Ignorable::Yes ? "yes" : "no");
  return out;
}

}  // namespace gantry::preflight
